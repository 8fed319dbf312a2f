"""`python -m qornn`, which torchrun needs: `torchrun --nproc-per-node 2 -m qornn train …`."""

from qornn.cli import main

if __name__ == "__main__":
    main()
