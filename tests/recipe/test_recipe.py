import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qornn import recipe
from qornn.errors import QornnError, SettingsError
from qornn.recipe import ModelSettings, Recipe, TrainSettings, find_cell, from_toml, resolve, setting
from qornn.tasks import TASKS


def test_every_task_has_a_recipe_and_every_cell_resolves():
    assert recipe.names() == sorted(TASKS)
    for name in recipe.names():
        for cell in recipe.cells(name):
            assert cell.recipe.task["name"] == name
            assert from_toml(cell.recipe.to_toml()) == cell.recipe


def test_strategies_carry_their_hyperparameters():
    bjorck, projunn = resolve("copy", map="bjorck", bits=5), resolve("copy", map="projunn", bits="fp")
    assert (bjorck.train.optimizer, bjorck.train.lr, bjorck.model.init) == ("adam", 1e-4, "haar")
    assert (projunn.train.optimizer, projunn.train.lr, projunn.train.divider) == ("rmsprop", 7e-4, 32)
    assert (projunn.model.init, projunn.model.bits, bjorck.model.bits) == ("henaff", None, 5)
    assert resolve("adding", map="projunn", bits=5).model.quantizer == "identity-offset"
    assert resolve("pmnist", map="penalty").train.batch == 64


def test_an_unlisted_map_takes_the_first_strategy_s_settings():
    free = resolve("pmnist", map="free")
    assert free.model == replace(resolve("pmnist", map="bjorck").model, map="free")


def test_settings_override_in_order_and_keep_their_types():
    got = resolve("copy", settings=["task.T0=200", "train.lr=2e-4", "model.n_h=64", "train.lr=1", "model.scale=row"])
    assert got.task["T0"] == 200
    assert got.train.lr == 1.0
    assert isinstance(got.train.lr, float)
    assert (got.model.n_h, got.model.scale) == (64, "row")


BAD = [
    ("train.lrr=1", "Did you mean 'lr'"),
    ("model.nh=1", "Did you mean 'n_h'"),
    ("task.T=1", "unknown setting of task 'copy' 'T'"),
    ("optim.lr=1", r"task\.NAME, model\.NAME or train\.NAME"),
    ("train.lr", "KEY=VALUE"),
    ("train.lr=fast", "train.lr must be float, got 'fast'"),
    ("train.lr=-1", "train.lr must be positive, got -1"),
    ("train.lr=nan", "train.lr must be positive"),
    ("train.state_penalty=-1e-5", "train.state_penalty must be a number of 0 or more, got -1e-05"),
    ("train.state_penalty=inf", "train.state_penalty must be a number of 0 or more"),
    ("train.batch=0", "train.batch must be at least 1, got 0"),
    ("train.batch=1.5", "train.batch must be int, got 1.5"),
    ("model.bits=12", r"bits must be in 2\.\.8, got 12.*'fp'"),
    ("model.n_h=true", "model.n_h must be int, got True"),
]


@pytest.mark.parametrize(("setting", "message"), BAD)
def test_bad_settings_are_refused(setting, message):
    with pytest.raises(SettingsError, match=message):
        resolve("copy", settings=[setting])


def test_unknown_recipe_and_bits():
    with pytest.raises(SettingsError, match="Did you mean 'pmnist'"):
        resolve("pmnst")
    with pytest.raises(SettingsError, match="got 'many'"):
        resolve("copy", bits="many")


@given(
    st.builds(
        ModelSettings,
        n_h=st.integers(1, 10**6),
        bits=st.sampled_from([None, *range(2, 9)]),
        map=st.text(st.characters(codec="utf-8")),
    ),
    st.builds(
        TrainSettings,
        lr=st.floats(1e-9, 1e9),
        seed=st.integers(0, 2**31),
        optimizer=st.text(st.characters(codec="utf-8"), max_size=8),
    ),
)
def test_toml_round_trip(model, train):
    original = Recipe(task={"name": "copy", "T0": 7}, model=model, train=train)
    assert from_toml(original.to_toml()) == original


@pytest.mark.parametrize("text", ["σ 😀", 'a"b\\', "n\nl", "1e-3", "", "null"])
def test_a_setting_may_be_any_text(text):
    recipe = resolve("smnist", settings=[setting("task.data_dir", text)])
    assert recipe.task["data_dir"] == text
    assert from_toml(recipe.to_toml()).task["data_dir"] == text


def test_text_that_is_not_utf8_is_refused_in_words():
    odd = os.fsdecode(b"caf\xe9")
    with pytest.raises(SettingsError, match=r"task\.data_dir .*UTF-8.*caf\\udce9"):
        resolve("smnist", settings=[setting("task.data_dir", odd)])
    recipe = resolve("smnist")
    with pytest.raises(SettingsError, match=r"UTF-8.*caf\\udce9"):
        replace(recipe, train=replace(recipe.train, start=odd)).to_toml()


def test_bad_toml_names_the_place():
    with pytest.raises(SettingsError, match=r"here\.toml is not valid TOML"):
        from_toml("[task", where="here.toml")
    with pytest.raises(QornnError, match="unknown recipe table 'tarin'"):
        from_toml('[task]\nname = "copy"\n[tarin]\n')


def test_find_cell_gives_the_paper_s_figure_for_the_same_network():
    assert find_cell(resolve("copy", bits=5)).paper == 2.5e-3  # tab:performance_all
    assert find_cell(resolve("copy", bits=5, settings=["model.n_h=190"])).paper == 1.4e-2  # tab:performance_copy_190
    assert find_cell(resolve("copy", bits=6, settings=["task.T0=2000"])).paper == 9.4e-3  # tab:performance_copy_2000
    assert find_cell(resolve("pmnist", bits=8, settings=["train.epochs=1", "task.validation=0"])).paper == 94.64
    assert find_cell(resolve("ptb", bits=5, settings=["train.lr=1e-2"])).paper == 1.506  # tab:hyper
    assert find_cell(resolve("ptb", bits=5)).paper == 1.490
    assert find_cell(resolve("copy", bits=5, settings=["model.n_h=64"])) is None
    assert find_cell(resolve("digits", bits=4)) is None


def test_find_cell_knows_post_training_quantization():
    ptq = next(c for c in recipe.cells("pmnist") if c.post)
    assert find_cell(ptq.recipe, post_bits=4).paper == 13.3  # tab:ablation
    assert find_cell(ptq.recipe, post_bits=8).paper == 90.2


def test_no_steps_at_all_are_refused_but_old_recipes_open():
    recipe = resolve("copy")
    assert recipe.train.steps == 0  # in a file: as many as the epochs take
    assert from_toml(recipe.to_toml()) == recipe
    for text in ("train.steps=0", "train.steps = -0", "train.steps=0x0"):
        with pytest.raises(SettingsError, match=r"train.steps must be at least 1, got 0; leave it out"):
            recipe.override([text])


@pytest.mark.parametrize(
    "text", ["train.lr=1e-3\nlr=5", "train.lr=1e-3\r\nx=1", "model.map=bjorck\nseed", "train.lr=\n1"]
)
def test_a_setting_of_two_lines_is_refused(text):
    with pytest.raises(SettingsError, match="a setting is one line"):
        resolve("copy", settings=[text])


def test_every_task_has_a_stack_that_is_read_back():
    for name in recipe.names():
        made = resolve(name, model="stack")
        assert made.model.kind == "stack"
        assert (made.model.bits, made.train.optimizer, made.train.schedule) == (4, "adamw", "one-cycle")
        assert from_toml(made.to_toml()) == made
        float_states = resolve(name, model="stack", activation_bits="fp")
        assert (float_states.model.bits, float_states.model.activation_bits) == (4, None)
        assert from_toml(float_states.to_toml()) == float_states


def test_a_stack_has_its_own_defaults():
    made = recipe.from_tables({"task": {"name": "digits"}, "model": {"kind": "stack"}}).model
    assert (made.width, made.n_pairs, made.layers, made.skip, made.pool) == (16, 16, 2, False, None)
    assert (made.bits, made.activation_bits, made.weight_bits, made.n_out) == (4, 8, 4, 16)
    assert resolve("digits", model="stack", activation_bits="6").model.activation_bits == 6
    assert resolve("digits", model="stack", bits="fp").model.activation_bits is None
    assert resolve("digits", model="stack", settings=["model.activation_bits=null"]).model.activation_bits is None


def test_recipes_of_other_networks_have_the_keys_that_they_had():
    keys = resolve("copy", map="projunn").tables()["model"].keys()
    assert {"n_h", "map", "activation_bits"} <= keys
    assert not keys & {"width", "pairs", "layers", "integrators", "input_bits", "pool"}
    assert not resolve("copy", model="stack").tables()["model"].keys() & {"n_h", "map", "map_options", "init"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"settings": ["model.width=32"]},
            r"model\.width=32 is a setting only of --model stack; this model is 'qornn'",
        ),
        (
            {"model": "lstm", "settings": ["model.dropout=0.1"]},
            "is a setting only of --model stack; this model is 'lstm'",
        ),
        ({"settings": ["model.kind=stack"]}, "has no effect on a stack.*--model stack trains one"),
        ({"map": "stack"}, "stack is a model, not a map; use --model stack"),
        ({"model": "stack", "map": "bjorck"}, "the model 'stack' has no orthogonal matrix"),
        ({"activation_bits": 8}, "activation_bits is a training setting only of --model stack.*qornn lower RUN"),
        ({"model": "stack", "activation_bits": "many"}, "activation_bits must be a whole number, or fp.*'many'"),
        ({"settings": ["train.decay=0.1"]}, r"train\.decay=0\.1 needs the optimizer adamw, not 'adam'"),
        ({"settings": ["train.decay=-1"]}, r"train\.decay must be a number of 0 or more"),
        ({"settings": ["train.schedule=onecycle"]}, "Did you mean 'one-cycle'"),
    ],
)
def test_settings_of_another_kind_of_network_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        resolve("copy", **options)


def test_activation_bits_of_baselines_that_have_some():
    assert resolve("copy", model="fastgrnn", activation_bits=16).model.activation_bits == 16
