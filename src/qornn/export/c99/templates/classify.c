
int @name@_classify(const @name@_state *s) {
    @y_type@ y[@name@_N_O];
    int best = 0;
    @name@_predict(s, y);
    for (int o = 1; o < @name@_N_O; o++) {
        best = y[o] > y[best] ? o : best;
    }
    return best;
}
