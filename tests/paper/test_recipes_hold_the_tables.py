"""Every cell of the paper's tables stands in the recipes, and no other. Each table is retyped here from its label."""

import tomllib
from importlib.resources import files

import pytest

TASKS = ("copy", "adding", "smnist", "pmnist", "ptb")
RECIPES = {
    task: tomllib.loads((files("qornn") / "recipe" / "data" / f"{task}.toml").read_text("utf-8")) for task in TASKS
}
for recipe in RECIPES.values():  # structured networks and stacks are not the paper's: other tests have them
    recipe["strategy"].pop("structured")
    recipe["strategy"].pop("stack")
    recipe["cell"] = [cell for cell in recipe["cell"] if cell["table"] != "structured"]
NC, NU, FP = "NC", "NU", "fp"
ARDAKANI, KUSUPATI, KIANI, WISDOM = (
    "Ardakani et al. 2018",
    "Kusupati et al. 2018",
    "Kiani et al. 2022",
    "Wisdom et al. 2016",  # the copy task's LSTM: appendix, hyperparameters
)

# tab:performance_all: (strategy, weight bits, activation bits) -> copy, pmnist, smnist, ptb.
PERFORMANCE_COLUMNS = ("copy", "pmnist", "smnist", "ptb")
PERFORMANCE = {
    ("lstm", FP, FP): (NC, 92.00, 98.90, 1.39),
    ("fastrnn", FP, FP): (NC, 90.83, 96.44, 1.455),
    ("fastgrnn", FP, FP): (NC, 92.9, NU, 1.577),
    ("fastgrnn", 8, 16): (NC, NU, 98.20, NU),
    ("bjorck", FP, FP): (6.4e-6, 94.51, 96.61, 1.404),
    ("bjorck", 8, FP): (1.6e-5, 94.64, 96.27, 1.452),
    ("bjorck", 8, 12): (1.7e-5, 94.76, 96.20, 1.452),
    ("bjorck", 6, FP): (3.8e-5, 93.93, 94.81, 1.476),
    ("bjorck", 6, 12): (3.7e-5, 93.94, 94.74, 1.476),
    ("bjorck", 5, FP): (2.5e-3, 93.67, 87.75, 1.490),
    ("bjorck", 5, 12): (2.5e-3, 93.67, 87.70, 1.490),
    ("bjorck", 4, FP): (NC, 92.36, 73.84, 1.559),
    ("bjorck", 4, 12): (NC, 92.33, 73.38, 1.559),
    ("projunn", FP, FP): (1.1e-12, 94.3, 90.03, 1.739),
    ("projunn", 8, FP): (2.0e-10, 91.27, 89.53, 1.742),
    ("projunn", 6, FP): (6.5e-5, 90.73, 88.06, 1.745),
    ("projunn", 5, FP): (1.0e-3, 90.89, 87.42, 1.753),
}
# tab:performance_all and tab:modelsize_all: the marks dagger, star and double dagger; WISDOM from the appendix.
CITED = {
    ("copy", "performance", "lstm", FP): WISDOM,
    ("pmnist", "performance", "lstm", FP): KIANI,
    ("smnist", "performance", "lstm", FP): ARDAKANI,
    ("ptb", "performance", "lstm", FP): ARDAKANI,
    ("smnist", "performance", "fastrnn", FP): KUSUPATI,
    ("smnist", "performance", "fastgrnn", 8): KUSUPATI,
    ("pmnist", "performance", "projunn", FP): KIANI,
    ("copy", "sizes", "lstm", 2): ARDAKANI,
    ("smnist", "sizes", "lstm", 2): ARDAKANI,
    ("ptb", "sizes", "lstm", 2): ARDAKANI,
}
# tab:modelsize_all: kP and kB by (strategy, weight bits); ditto marks spelled out.
SIZES_COLUMNS = ("copy", "smnist", "ptb")
SIZES = {
    ("lstm", FP): ((NC, NC), (41.4, 162), (4300.8, 16800)),
    ("lstm", 2): ((NC, NC), (41.4, 10), (4300.8, 525)),
    ("fastrnn", FP): ((NC, NC), (30.8, 120.2), (1151.0, 4496)),
    ("fastgrnn", FP): ((NC, NC), (NU, NU), (1151.0, 4496)),
    ("fastgrnn", 8): ((NC, NC), (6, 6), (NU, NU)),
    ("ste", FP): ((70.4, 275), (30.8, 120.2), (1151.0, 4496)),
    ("ste", 8): ((70.4, 75.5), (30.8, 35.0), (1151.0, 1274)),
    ("ste", 6): ((70.4, 58.9), (30.8, 27.9), (1151.0, 1005.5)),
    ("ste", 5): ((70.4, 50.6), (30.8, 24.4), (1151.0, 871.2)),
    ("ste", 4): ((70.4, NC), (30.8, 20.8), (1151.0, 737.0)),
}
# tab:alpha_activ, STE-Bjorck: alpha_W and alpha_W alpha_h by task, then by weight bits.
ALPHAS = {
    "copy": {5: (0.2651, 4.0), 6: (0.2818, 4.0), 8: (0.2609, 4.0)},
    "smnist": {4: (0.4338, 2.0), 5: (0.3656, 2.0), 6: (0.4094, 4.0), 8: (0.4073, 2.0)},
    "pmnist": {4: (0.3661, 1.0), 5: (0.3444, 1.0), 6: (0.3866, 1.0), 8: (0.6007, 2.0)},
    "ptb": {4: (0.1952, 1.0), 5: (0.2350, 1.0), 6: (0.1661, 1.0), 8: (0.4827, 1.0)},
}
# The smaller tables: task, what every cell sets, then strategy -> weight bits -> figure.
TABLES = {
    "ablation": (  # tab:ablation
        "pmnist",
        {},
        {
            "bjorck": {4: 92.36, 6: 93.93, 8: 94.64},
            "ptq": {4: 13.3, 6: 42.2, 8: 90.2},
            "penalty": {4: 44.9, 6: 75.4, 8: 71.0},
        },
    ),
    "copy190": (  # tab:performance_copy_190
        "copy",
        {"model.n_h": 190},
        {
            "bjorck": {FP: 8.1e-6, 5: 1.4e-2, 6: 1.0e-3, 8: 3.2e-05},
            "projunn": {FP: 6.0e-10, 5: 2.9e-3, 6: 6.4e-4, 8: 2.4e-08},
        },
    ),
    "copy2000": (  # tab:performance_copy_2000
        "copy",
        {"task.T0": 2000},
        {
            "bjorck": {FP: 8.9e-6, 5: NC, 6: 9.4e-3, 8: 4.3e-05},
            "projunn": {FP: 4.2e-11, 5: NC, 6: 7.1e-4, 8: 7.5e-06},
        },
    ),
    "pmnist360": (  # tab:pmnist360
        "pmnist",
        {"model.n_h": 360},
        {
            "bjorck": {FP: 95.43, 3: 93.32, 5: 95.71, 6: 95.51, 8: 95.20},
            "projunn": {FP: 93.28, 3: 44.29, 5: 92.17, 6: 93.06, 8: 93.10},
        },
    ),
    "ptb2048": (  # tab:PTB2048
        "ptb",
        {"model.n_h": 2048},
        {
            "bjorck": {FP: 1.45, 4: 1.53, 5: 1.45, 6: 1.43, 8: 1.45},
            "projunn": {FP: 1.60, 4: NC, 5: 1.79, 6: 1.66, 8: 1.60},
        },
    ),
    "adding170": (  # tab:adding_all
        "adding",
        {},
        {
            "lstm": {FP: 1.0e-4},
            "bjorck": {FP: 9.0e-3, 2: 0.153, 3: 0.065, 5: 0.040, 6: 0.034, 8: 8.8e-3},
            "projunn": {FP: 2.0e-4, 2: 0.170, 3: 0.165, 5: 0.080, 6: 0.147, 8: 0.062},
        },
    ),
    "adding400": (  # tab:adding400
        "adding",
        {"model.n_h": 400},
        {
            "bjorck": {FP: 5.3e-4, 2: 0.072, 3: 0.076, 5: 0.029, 6: 0.018, 8: 4.4e-3},
            "projunn": {FP: 2.0e-4, 2: 0.164, 3: 0.167, 5: 0.083, 6: 0.097, 8: 0.043},
        },
    ),
}
# tab:hyper, PTB, STE-Bjorck at 5 bits.
HYPER_SET = {
    "train.lr": {1e-4: 1.803, 1e-3: 1.490, 1e-2: 1.506, 1e-1: 2.087},
    "train.batch": {64: 1.482, 128: 1.490, 256: 1.510, 512: 1.570},
}
HYPER_SEEDS = {"min of 5 seeds": 1.484, "median of 5 seeds": 1.490, "max of 5 seeds": 1.494}
# tab:compute, minutes per epoch.
MINUTES = {
    "copy": {"bjorck": 38, "projunn": 39},
    "pmnist": {"fastrnn": 3.8, "fastgrnn": 4.2, "bjorck": 2.2, "projunn": 4.2},
    "ptb": {"fastrnn": 0.57, "fastgrnn": 0.86, "bjorck": 1.07, "projunn": 0.37},
}
# Appendix, hyperparameters: what the paper states for each strategy. None: it does not apply, or the paper is silent.
# map, init, activation, optimizer, learning rate, divider, schedule (factor, every), epochs, batch
STATED = {
    ("copy", "bjorck"): ("bjorck", None, "modrelu", "adam", 1e-4, None, (0.9, 1), 10, 128),
    ("copy", "projunn"): ("projunn", "henaff", "modrelu", "rmsprop", 7e-4, 32, (0.9, 1), 10, 128),
    ("adding", "bjorck"): ("bjorck", "identity", "relu", "adam", 1e-3, None, (0.94, 1), 50, 50),
    ("adding", "projunn"): ("projunn", "identity", "relu", "rmsprop", 1e-4, 32, (0.94, 1), 50, 50),
    ("smnist", "bjorck"): ("bjorck", "haar", "relu", "adam", 1e-3, None, (0.2, 60), 200, 128),
    ("smnist", "projunn"): ("projunn", "haar", "modrelu", "rmsprop", 1e-3, None, (0.2, 60), 200, 128),
    ("pmnist", "bjorck"): ("bjorck", "haar", "relu", "adam", 1e-3, None, (0.2, 60), 200, 128),
    ("pmnist", "projunn"): ("projunn", "haar", "modrelu", "rmsprop", 1e-3, None, (0.2, 60), 200, 128),
    ("pmnist", "ptq"): ("projunn", "haar", "relu", "rmsprop", 1e-3, None, (0.2, 60), 200, 128),
    ("pmnist", "penalty"): ("penalty", "haar", "relu", "adam", 1e-3, None, (1.0, 60), 200, 64),
    ("pmnist", "fastrnn"): (None, None, None, "adam", 1e-3, None, (0.7, 60), 200, 128),
    ("pmnist", "fastgrnn"): (None, None, None, "adam", 1e-3, None, (0.7, 60), 200, 128),
    ("ptb", "bjorck"): ("bjorck", "haar", "relu", "adam", 1e-3, None, (0.2, 20), 60, 128),
    ("ptb", "projunn"): ("projunn", "haar", "modrelu", "rmsprop", 1e-3, 8, (0.2, 20), 60, 128),
    ("ptb", "fastrnn"): (None, None, None, "adam", 1e-4, None, (0.7, 40), 120, 128),
    ("ptb", "fastgrnn"): (None, None, None, "adam", 1e-4, None, (0.7, 40), 120, 128),
}
N_H = {"copy": 256, "adding": 170, "smnist": 170, "pmnist": 170, "ptb": 1024}  # sections of the tasks


def cells(task, table):
    return [cell for cell in RECIPES[task].get("cell", []) if cell["table"] == table]


def the_cell(task, table, strategy, bits):
    """The only such cell with no override of its own."""
    found = [c for c in cells(task, table) if (c["strategy"], c["bits"]) == (strategy, bits) and "set" not in c]
    assert len(found) == 1, f"{task}, {table}: {len(found)} cells for {strategy} at {bits} bits"
    return found[0]


def resolved(task, strategy):
    """[model] and [train] of a strategy, its own keys last."""
    recipe = RECIPES[task]
    own = recipe["strategy"][strategy]
    return {**recipe["model"], **own.get("model", {})}, {**recipe["train"], **own.get("train", {})}


@pytest.mark.parametrize(("row", "figures"), PERFORMANCE.items())
def test_performance(row, figures):
    strategy, bits, activation_bits = row
    for task, figure in zip(PERFORMANCE_COLUMNS, figures, strict=True):
        cell = the_cell(task, "performance", strategy, bits)
        if activation_bits == 12:
            assert cell["paper_at"] == {"12": figure}
        else:
            assert cell["paper"] == figure
            assert cell.get("activation_bits", FP) == activation_bits


@pytest.mark.parametrize("task", PERFORMANCE_COLUMNS)
def test_performance_has_no_other_cell(task):
    rows = {(strategy, bits) for strategy, bits, _ in PERFORMANCE}
    plain = [c for c in cells(task, "performance") if "set" not in c]
    assert {(c["strategy"], c["bits"]) for c in plain} == rows
    at_12 = {(c["strategy"], c["bits"]) for c in plain if "paper_at" in c}
    assert at_12 == {(strategy, bits) for strategy, bits, activation_bits in PERFORMANCE if activation_bits == 12}
    varied = [c for c in cells(task, "performance") if "set" in c]
    others = {(c["strategy"], c["bits"], c["paper"], *c["set"].items()) for c in varied}
    # The appendix gives FastRNN 128 units on pMNIST, the section and tab:compute 170: a second cell, the same figure.
    assert len(varied) == len(others)
    both = {("fastrnn", FP, 90.83, ("model.n_h", 128)), ("fastgrnn", FP, 92.9, ("model.n_h", 128))}
    assert others == (both if task == "pmnist" else set())


@pytest.mark.parametrize(("row", "figures"), SIZES.items())
def test_sizes(row, figures):
    strategy, bits = row
    table = "sizes" if row == ("lstm", 2) else "performance"
    for task, printed in zip(SIZES_COLUMNS, figures, strict=True):
        expected = {key: v for key, v in zip(("paper_kP", "paper_kB"), printed, strict=True) if v not in (NC, NU)}
        for name in ("bjorck", "projunn") if strategy == "ste" else (strategy,):
            if (name, bits) == ("projunn", 4):
                continue  # tab:performance_all has no such row
            cell = the_cell(task, table, name, bits)
            assert {key: cell[key] for key in ("paper_kP", "paper_kB") if key in cell} == expected


def test_pmnist_reads_its_sizes_from_the_column_of_smnist():
    expected = {bits: smnist for (name, bits), (_, smnist, _) in SIZES.items() if name == "ste"}
    found = [c for c in cells("pmnist", "performance") if "paper_kB" in c]
    assert {(c["strategy"], c["bits"]): (c["paper_kP"], c["paper_kB"]) for c in found} == {
        (name, bits): size
        for name in ("bjorck", "projunn")
        for bits, size in expected.items()
        if (name, bits) != ("projunn", 4)
    }


def test_no_other_cell_has_a_size():
    others = [
        (task, c["table"], c["strategy"], c["bits"], c.get("paper_kP"), c["paper_kB"])
        for task in TASKS
        for c in RECIPES[task]["cell"]
        if "paper_kB" in c and c["table"] not in ("performance", "sizes")
    ]
    assert others == [("pmnist", "pmnist360", "bjorck", 3, None, 62)]  # text below tab:pmnist360
    assert the_cell("copy", "sizes", "lstm", 2)["paper"] == NC
    assert [(t, c["strategy"], c["bits"]) for t in TASKS for c in cells(t, "sizes")] == [
        (task, "lstm", 2) for task in SIZES_COLUMNS
    ]


@pytest.mark.parametrize("task", TASKS)
def test_alphas(task):
    found = {
        (c["table"], c["strategy"], c["bits"]): (c["paper_alpha_W"], c["paper_alpha_W_alpha_h"])
        for c in RECIPES[task]["cell"]
        if "paper_alpha_W" in c or "paper_alpha_W_alpha_h" in c
    }
    assert found == {("performance", "bjorck", bits): pair for bits, pair in ALPHAS.get(task, {}).items()}


@pytest.mark.parametrize(("table", "task", "overrides", "figures"), [(name, *rest) for name, rest in TABLES.items()])
def test_smaller_tables(table, task, overrides, figures):
    expected = {(strategy, bits): figure for strategy, row in figures.items() for bits, figure in row.items()}
    found = cells(task, table)
    assert len(found) == len(expected)
    assert {(c["strategy"], c["bits"]): c["paper"] for c in found} == expected
    assert all(c.get("set", {}) == overrides for c in found)
    assert all(c.get("post", False) == (c["strategy"] == "ptq") for c in found)


def test_hyperparameter_table():
    found = cells("ptb", "hyper")
    assert len(found) == 11
    assert all((c["strategy"], c["bits"]) == ("bjorck", 5) for c in found)
    for key, row in HYPER_SET.items():
        assert {c["set"][key]: c["paper"] for c in found if key in c.get("set", {})} == row
    assert all(len(c["set"]) == 1 for c in found if "set" in c)
    assert {c["note"]: c["paper"] for c in found if "note" in c} == HYPER_SEEDS
    assert all("note" not in c for task in TASKS for c in RECIPES[task]["cell"] if c["table"] != "hyper")


@pytest.mark.parametrize("task", TASKS)
def test_minutes_an_epoch(task):
    found = {name: s["paper_minutes"] for name, s in RECIPES[task]["strategy"].items() if "paper_minutes" in s}
    assert found == MINUTES.get(task, {})


@pytest.mark.parametrize("task", TASKS)
def test_no_table_is_in_the_wrong_recipe(task):
    expected = {name for name, (home, _, _) in TABLES.items() if home == task}
    expected |= {"performance"} if task in PERFORMANCE_COLUMNS else set()
    expected |= {"sizes"} if task in SIZES_COLUMNS else set()
    expected |= {"hyper"} if task == "ptb" else set()
    assert {c["table"] for c in RECIPES[task]["cell"]} == expected


def test_cited_figures_name_their_source():
    found = {
        (task, c["table"], c["strategy"], c["bits"]): c["cited"]
        for task in TASKS
        for c in RECIPES[task]["cell"]
        if "cited" in c
    }
    assert found == CITED


@pytest.mark.parametrize(("home", "stated"), STATED.items())
def test_hyperparameters_are_those_of_the_appendix(home, stated):
    model, train = resolved(*home)
    kind = home[1] if home[1].startswith("fast") else "qornn"
    assert model.get("kind", "qornn") == kind
    assert model["n_h"] == N_H[home[0]]
    schedule = (train["lr_factor"], train["lr_every"])
    rest = (train["optimizer"], train["lr"], train.get("divider"), schedule, train["epochs"], train["batch"])
    assert rest == stated[3:]
    for key, value in zip(("map", "init", "activation"), stated[:3], strict=True):
        assert value is None or model[key] == value
    if model.get("map") == "projunn":
        assert model["map_options"] == {"rank": 1}


def test_facts_stated_once():
    assert RECIPES["copy"]["task"] == {"name": "copy", "T0": 1000}
    assert RECIPES["adding"]["task"] == {"name": "adding", "T": 750}
    assert RECIPES["ptb"]["task"] == {"name": "ptb", "T": 150, "protocol": "pieces"}  # the protocol is our choice
    assert resolved("pmnist", "penalty")[0]["map_options"] == {"strength": 0.1}
    assert resolved("ptb", "lstm")[0]["n_h"] == 1000  # section on Penn TreeBank: 1000 cells
    offset = {(t, s) for t in TASKS for s in RECIPES[t]["strategy"] if "quantizer" in resolved(t, s)[0]}
    assert offset == {("adding", "projunn")}
    assert resolved("adding", "projunn")[0]["quantizer"] == "identity-offset"


def test_choices_of_our_own_where_the_paper_is_silent():
    assert resolved("copy", "bjorck")[0]["init"] == "haar"
    V = {
        task: (r["model"]["init_U"], r["model"]["init_V"], r["model"].get("gain_V", 1.0)) for task, r in RECIPES.items()
    }
    xavier = "xavier-normal"
    assert V.pop("copy") == (xavier, "kaiming-normal", 1.0)
    assert V.pop("adding") == (xavier, xavier, 0.5)
    assert set(V.values()) == {(xavier, xavier, 1.0)}
    # 4 (100^2 + 100) + 10 x 100 is the 41.4 kP of tab:modelsize_all.
    assert resolved("smnist", "lstm")[0]["n_h"] == 100
    for task, recipe in RECIPES.items():
        for strategy in {"lstm", "fastrnn", "fastgrnn"} & set(recipe["strategy"]):
            train = resolved(task, strategy)[1]
            assert train["optimizer"] == "adam"
            assert train["lr"] == (1e-4 if (task, strategy[:4]) == ("ptb", "fast") else 1e-3)
    assert {resolved("smnist", s)[1]["lr_factor"] for s in ("fastrnn", "fastgrnn")} == {0.7}


@pytest.mark.parametrize("task", TASKS)
def test_every_cell_can_be_rerun(task):
    recipe = RECIPES[task]
    assert recipe["task"]["name"] == task
    assert {c["strategy"] for c in recipe["cell"]} == set(recipe["strategy"])
    for strategy in recipe["strategy"]:
        model, train = resolved(task, strategy)
        is_baseline = strategy in ("lstm", "fastrnn", "fastgrnn")
        needed = {"kind", "n_h"} if is_baseline else {"n_h", "map", "init", "activation", "init_U", "init_V"}
        assert needed <= set(model)
        assert model.get("kind", "qornn") == (strategy if is_baseline else "qornn")
        assert set(train) - {"divider"} == {"optimizer", "lr", "lr_factor", "lr_every", "epochs", "batch"}


KEYS = {
    "model": "kind bits n_h map map_options quantizer activation init init_U init_V gain_V",
    "train": "optimizer lr divider lr_factor lr_every epochs batch",
    "strategy": "paper_minutes model train",
    "cell": "table strategy bits activation_bits seeds post set note cited paper paper_at paper_kP paper_kB"
    " paper_alpha_W paper_alpha_W_alpha_h",
}


@pytest.mark.parametrize("task", TASKS)
def test_keys_are_known_and_overrides_change_something_that_exists(task):
    recipe = RECIPES[task]
    parts = [("model", recipe["model"]), ("train", recipe["train"])]
    for strategy in recipe["strategy"].values():
        parts += [("strategy", strategy), ("model", strategy["model"]), ("train", strategy["train"])]
    parts += [("cell", cell) for cell in recipe["cell"]]
    for kind, part in parts:
        assert set(part) <= set(KEYS[kind].split())
    for cell in recipe["cell"]:
        assert cell["bits"] == FP or cell["bits"] in range(2, 9)
        for key in cell.get("set", {}):
            section, _, name = key.partition(".")
            assert name in recipe[section]
