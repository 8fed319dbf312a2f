    @answer@
