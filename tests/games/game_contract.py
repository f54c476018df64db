"""Promises of every game, as one abstract test class: subclass it and give it a game."""

from dataclasses import fields

import numpy as np
import pytest

from chess_snn.errors import ConfigError, IllegalMoveError, PositionError
from chess_snn.games import ONGOING, GameBatch
from chess_snn.games.starts import random_legal_actions

NUM_GAMES = 48
MAX_PLIES = 600


def keys(num_games, seed=0):
    return np.arange(seed, seed + num_games, dtype=np.uint64)


def chance_words(num_games, ply):
    return np.random.default_rng(ply).integers(0, 2**64, num_games, dtype=np.uint64)


def remembered(spec, batch):
    """uint64[G]: what the ring holds of each game's newest position."""
    return batch.history[np.arange(len(batch)), batch.ply % spec.history_length]


def step_below_root(game, root, path, actions, chance=None):
    """Step as a search does: play ``actions`` as if ``path`` had been played from ``root``.

    ``path`` lists the states uint64[G, W] of plies 1, 2, ... below the root.
    """
    spec, batch = game.spec, snapshot(root)
    for states in path:
        batch.state = states.copy()
        batch.ply += 1
        if spec.history_length:
            newest = np.arange(len(batch)), batch.ply % spec.history_length
            batch.history[newest] = states[:, spec.history_word]
    batch.termination[:] = ONGOING
    game.step(batch, actions, chance)
    return batch


def transform(game, states, actions, view):
    return game.transform(states, actions, np.full(len(states), view, np.uint8))


def views(game):
    return range(game.spec.num_symmetries)


def snapshot(batch):
    return batch.take(np.arange(len(batch)))


def assert_rows_equal(batch, other, rows, other_rows=None):
    """Every defined word of ``rows`` equals that of ``other_rows`` (default: the same rows)."""
    other_rows = rows if other_rows is None else other_rows
    for field in fields(GameBatch):
        if field.name != "legal_actions":
            mine, theirs = getattr(batch, field.name)[rows], getattr(other, field.name)[other_rows]
            np.testing.assert_array_equal(mine, theirs, err_msg=field.name)
    for row, other_row in zip(rows, other_rows, strict=True):
        count = batch.num_legal[row]
        np.testing.assert_array_equal(
            batch.legal_actions[row, :count], other.legal_actions[other_row, :count]
        )


class GameContract:
    """Subclasses define the fixtures ``game``, ``bad_states`` and ``bad_actions``."""

    has_practice_states = True

    @pytest.fixture
    def game(self):
        raise NotImplementedError

    @pytest.fixture
    def bad_states(self):
        """Texts that are no position of the game."""
        raise NotImplementedError

    @pytest.fixture
    def bad_actions(self):
        """Texts that are no legal action at the game's first position."""
        raise NotImplementedError

    def start(self, game, num_games=NUM_GAMES):
        batch = game.allocate(num_games)
        game.reset(batch, np.arange(num_games), game.initial_states(keys(num_games)))
        return batch

    def random_ply(self, game, batch, ply, **bounds):
        plies = np.full(len(batch), ply, dtype=np.int32)
        actions = random_legal_actions(batch, keys(len(batch)), plies)
        game.step(batch, actions, chance_words(len(batch), ply), **bounds)
        return actions

    @pytest.fixture
    def midgame(self, game):
        """Games of which some have ended."""
        batch = self.start(game)
        for ply in range(MAX_PLIES):
            self.random_ply(game, batch, ply)
            if np.count_nonzero(batch.termination) >= NUM_GAMES // 4:
                return batch
        raise AssertionError(f"a quarter of the games should end within {MAX_PLIES} random plies")

    def test_spec_is_consistent(self, game):
        spec = game.spec
        height, width = spec.board_shape
        assert height * width <= 64
        assert spec.record_words <= spec.state_words
        assert spec.terminations[ONGOING] == "ongoing"
        if spec.history_length:
            assert 0 <= spec.history_word < spec.state_words
        else:
            assert spec.history_word == -1
        assert spec.num_actions <= np.iinfo(np.int16).max
        if spec.policy_planes is not None:
            assert spec.num_actions == height * width * spec.policy_planes

    def test_allocate_gives_the_shapes_and_types_of_the_protocol(self, game):
        batch, spec = game.allocate(3), game.spec
        expected = {
            "state": ((3, spec.state_words), np.uint64),
            "history": ((3, spec.history_length), np.uint64),
            "ply": ((3,), np.int32),
            "legal_actions": ((3, spec.max_legal), np.int16),
            "num_legal": ((3,), np.int32),
            "termination": ((3,), np.uint8),
            "reward": ((3,), np.float32),
        }
        for name, (shape, dtype) in expected.items():
            array = getattr(batch, name)
            assert (array.shape, array.dtype) == (shape, dtype), name
        first = game.initial_states(keys(1))
        np.testing.assert_array_equal(batch.state, np.repeat(first, 3, axis=0))
        assert (batch.num_legal > 0).all()

    def test_legal_actions_are_distinct_and_in_range(self, game, midgame):
        for row in range(NUM_GAMES):
            legal = midgame.legal_actions[row, : midgame.num_legal[row]]
            assert len(np.unique(legal)) == len(legal)
            assert ((legal >= 0) & (legal < game.spec.num_actions)).all()

    def test_a_batch_lists_an_action_exactly_where_it_is_legal(self, game, midgame):
        legal = [
            set(actions[:count].tolist())
            for actions, count in zip(midgame.legal_actions, midgame.num_legal, strict=True)
        ]
        for action in (-1, *set().union(*legal)):
            listed = midgame.lists(np.full(NUM_GAMES, action, np.int16))
            assert listed.tolist() == [action in actions for actions in legal], action

    def test_a_game_has_legal_actions_exactly_while_it_goes_on(self, game):
        batch = self.start(game)
        for ply in range(MAX_PLIES):
            np.testing.assert_array_equal(batch.num_legal == 0, batch.termination != ONGOING)
            assert batch.termination.max() < len(game.spec.terminations)
            self.random_ply(game, batch, ply)
        assert batch.termination.any()

    def test_two_players_get_reward_for_winning_only(self, game):
        if game.spec.num_players != 2:
            pytest.skip("not a two-player game")
        batch = self.start(game)
        for ply in range(MAX_PLIES):
            self.random_ply(game, batch, ply)
            assert np.isin(batch.reward, (0, 1)).all()
            assert not batch.reward[batch.termination == ONGOING].any()

    def test_a_negative_action_leaves_its_row_alone(self, game, midgame):
        before = snapshot(midgame)
        game.step(midgame, np.full(NUM_GAMES, -1, np.int16), chance_words(NUM_GAMES, 0))
        assert_rows_equal(midgame, before, np.arange(NUM_GAMES))

    def test_an_ended_game_is_left_alone(self, game, midgame):
        before = snapshot(midgame)
        ended = np.flatnonzero(midgame.termination)
        actions = random_legal_actions(midgame, keys(NUM_GAMES), np.zeros(NUM_GAMES, np.int32))
        actions[ended] = game.allocate(1).legal_actions[0, 0]
        game.step(midgame, actions, chance_words(NUM_GAMES, 0))
        assert_rows_equal(midgame, before, ended)

    def test_the_rows_behind_are_not_touched(self, game, midgame):
        before, whole = snapshot(midgame), snapshot(midgame)
        self.random_ply(game, midgame, 7, num_rows=20)
        assert_rows_equal(midgame, before, np.arange(20, NUM_GAMES))
        self.random_ply(game, whole, 7)
        assert_rows_equal(midgame, whole, np.arange(20))

    def test_rows_do_not_depend_on_each_other(self, game, midgame):
        order = np.random.default_rng(0).permutation(NUM_GAMES)
        shuffled = midgame.take(order)
        actions = random_legal_actions(midgame, keys(NUM_GAMES), np.zeros(NUM_GAMES, np.int32))
        chance = chance_words(NUM_GAMES, 0)
        game.step(midgame, actions, chance)
        game.step(shuffled, actions[order], chance[order])
        assert_rows_equal(shuffled, midgame, np.arange(NUM_GAMES), order)
        np.testing.assert_array_equal(
            game.planes(shuffled.state), game.planes(midgame.state)[order]
        )

    def test_take_copies(self, game, midgame):
        before = snapshot(midgame)
        copy = midgame.take(np.arange(NUM_GAMES))
        self.random_ply(game, copy, 3)
        assert_rows_equal(midgame, before, np.arange(NUM_GAMES))

    def test_reset_forgets_what_the_row_held(self, game, midgame):
        rows = np.flatnonzero(midgame.termination)
        starts = game.initial_states(keys(len(rows)))
        game.reset(midgame, rows, starts)
        fresh = game.allocate(len(rows))
        game.reset(fresh, np.arange(len(rows)), starts)
        assert_rows_equal(midgame, fresh, rows, np.arange(len(rows)))

    def test_reset_needs_a_record_only(self, game, midgame):
        rows = np.arange(NUM_GAMES)
        records = np.zeros_like(midgame.state)
        records[:, : game.spec.record_words] = midgame.state[:, : game.spec.record_words]
        from_states, from_records = game.allocate(NUM_GAMES), game.allocate(NUM_GAMES)
        game.reset(from_states, rows, midgame.state)
        game.reset(from_records, rows, records)
        assert_rows_equal(from_records, from_states, rows)

    def test_plies_count_the_actions_played_since_the_reset(self, game):
        batch = self.start(game)
        played = np.zeros(NUM_GAMES, dtype=np.int32)
        for ply in range(30):
            np.testing.assert_array_equal(batch.ply, played)
            played += self.random_ply(game, batch, ply) >= 0
        game.reset(batch, np.array([3]), game.initial_states(keys(1)))
        assert (batch.ply == 0).tolist() == [row == 3 for row in range(NUM_GAMES)]

    def test_history_is_a_ring_of_the_newest_positions(self, game):
        spec, batch = game.spec, self.start(game)
        if not spec.history_length:
            pytest.skip("a game without memory")
        expected = np.zeros_like(batch.history)
        for ply in range(2 * spec.history_length + 3):
            newest = np.arange(NUM_GAMES), batch.ply % spec.history_length
            expected[newest] = batch.state[:, spec.history_word]
            np.testing.assert_array_equal(batch.history, expected)
            self.random_ply(game, batch, ply)
        assert batch.ply.max() > spec.history_length, "no game is long enough to come round"

    def test_a_step_below_a_root_equals_a_step_in_the_game(self, game, midgame):
        root, path = snapshot(midgame), []
        for ply in range(12):
            alive = np.flatnonzero(midgame.termination == ONGOING)
            before = snapshot(midgame)
            actions = self.random_ply(game, midgame, ply)
            below = step_below_root(game, root, path, actions, chance_words(NUM_GAMES, ply))
            assert_rows_equal(below, midgame, alive)
            np.testing.assert_array_equal(before.ply[alive] + 1, midgame.ply[alive])
            path.append(midgame.state.copy())

    def test_practice_states_go_on(self, game):
        if not self.has_practice_states:
            with pytest.raises(ConfigError, match=r"self_play\.practice_share_first"):
                game.practice_states(keys(NUM_GAMES))
            return
        batch = game.allocate(NUM_GAMES)
        states = game.practice_states(keys(NUM_GAMES))
        assert (states.shape, states.dtype) == ((NUM_GAMES, game.spec.state_words), np.uint64)
        game.reset(batch, np.arange(NUM_GAMES), states)
        assert (batch.termination == ONGOING).all()
        np.testing.assert_array_equal(batch.state, states)
        sides = set(game.side_to_move(states).tolist())
        assert sides == set(range(game.spec.num_players))

    def test_a_practice_state_depends_on_its_own_seed_alone(self, game):
        if not self.has_practice_states:
            pytest.skip("a game without practice positions")
        seeds = np.random.default_rng(1).integers(0, 2**64, NUM_GAMES, dtype=np.uint64)
        states = game.practice_states(seeds)
        assert len(np.unique(states, axis=0)) > 1
        np.testing.assert_array_equal(game.practice_states(seeds[::-1]), states[::-1])
        np.testing.assert_array_equal(game.practice_states(seeds[5:6]), states[5:6])

    def test_winning_actions_win(self, game, midgame):
        """A win at once is one; a game's own tests say which wins are overlooked."""
        wins = game.winning_actions(midgame.state, midgame.legal_actions, midgame.num_legal)
        assert wins.shape == (len(midgame),)
        assert wins.dtype == np.int16
        after = snapshot(midgame)
        game.step(after, wins, chance_words(len(after), 0))
        assert (after.reward[wins >= 0] > 0).all()
        assert (after.termination[wins >= 0] != ONGOING).all()

    def test_a_view_is_a_copy_and_keeps_negative_actions(self, game, midgame):
        states, actions = midgame.state.copy(), midgame.legal_actions.copy()
        actions[:, ::2] = -1
        before = states.copy(), actions.copy()
        for view in views(game):
            viewed = transform(game, states, actions, view)
            for array, old, new in zip((states, actions), before, viewed, strict=True):
                np.testing.assert_array_equal(array, old)
                assert (new.shape, new.dtype) == (old.shape, old.dtype)
                assert not np.shares_memory(array, new)
            np.testing.assert_array_equal(viewed[1] == -1, actions == -1)

    def test_view_0_changes_nothing_and_another_view_undoes_each(self, game, midgame):
        states, actions = midgame.state, midgame.legal_actions
        for view in views(game):
            viewed = transform(game, states, actions, view)
            backs = [transform(game, *viewed, back) for back in views(game)]
            assert any(
                np.array_equal(back[0], states) and np.array_equal(back[1], actions)
                for back in (backs if view else backs[:1])
            ), view

    def test_each_row_has_its_own_view(self, game, midgame):
        chosen = (np.arange(NUM_GAMES) % game.spec.num_symmetries).astype(np.uint8)
        mixed = game.transform(midgame.state, midgame.legal_actions, chosen)
        for view in views(game):
            alone = transform(game, midgame.state, midgame.legal_actions, view)
            for part, whole in zip(mixed, alone, strict=True):
                np.testing.assert_array_equal(part[chosen == view], whole[chosen == view])

    def test_a_viewed_position_has_the_viewed_actions(self, game, midgame):
        records = midgame.state[:, : game.spec.record_words]
        legal_actions, num_legal = game.legal_actions(records)
        for view in views(game):
            viewed_records, viewed_actions = transform(game, records, legal_actions, view)
            relisted, num_relisted = game.legal_actions(viewed_records)
            np.testing.assert_array_equal(num_relisted, num_legal)
            for row, count in enumerate(num_legal):
                assert set(viewed_actions[row, :count]) == set(relisted[row, :count])

    def test_a_move_in_a_view_leads_to_the_viewed_position(self, game, midgame):
        """Without the event, which the random bits choose by the numbers of the cells."""
        actions = random_legal_actions(midgame, keys(NUM_GAMES), np.zeros(NUM_GAMES, np.int32))
        played = snapshot(midgame)
        game.step(played, actions)
        for view in views(game):
            states, viewed = transform(game, midgame.state, actions[:, None], view)
            other = game.allocate(NUM_GAMES)
            game.reset(other, np.arange(NUM_GAMES), states)
            game.step(other, viewed[:, 0])
            goes_on = (midgame.termination == ONGOING) & (played.termination == ONGOING)
            expected, _ = transform(game, played.state, actions[:, None], view)
            record = slice(game.spec.record_words)
            np.testing.assert_array_equal(
                game.planes(other.state[goes_on, record]), game.planes(expected[goes_on, record])
            )
            np.testing.assert_array_equal(other.reward[goes_on], played.reward[goes_on])

    def test_milestones_follow_from_the_record_words(self, game, midgame):
        milestones = game.milestones(midgame.state)
        assert (milestones.dtype, milestones.shape) == (np.int64, (len(midgame),))
        record = midgame.state[:, : game.spec.record_words]
        np.testing.assert_array_equal(game.milestones(record), milestones)
        assert milestones.any() == bool(game.spec.milestones)
        assert list(game.spec.milestones) == sorted(set(game.spec.milestones))

    def test_planes_and_heuristic_need_a_record_only(self, game, midgame):
        spec = game.spec
        record = midgame.state[:, : spec.record_words]
        planes = game.planes(midgame.state)
        assert (planes.shape, planes.dtype) == ((NUM_GAMES, spec.all_planes), np.uint64)
        np.testing.assert_array_equal(game.planes(record), planes)
        heuristic = game.heuristic_stm(midgame.state)
        assert (heuristic.shape, heuristic.dtype) == ((NUM_GAMES,), np.float32)
        np.testing.assert_array_equal(game.heuristic_stm(record), heuristic)
        side = game.side_to_move(midgame.state)
        assert (side.shape, side.dtype) == ((NUM_GAMES,), np.uint8)
        np.testing.assert_array_equal(game.side_to_move(record), side)

    def test_legal_lists_of_records_are_those_of_the_games(self, game, midgame):
        records = midgame.state[:, : game.spec.record_words]
        legal_actions, num_legal = game.legal_actions(records)
        assert (legal_actions.shape, legal_actions.dtype) == (
            (NUM_GAMES, game.spec.max_legal), np.int16,
        )
        assert (num_legal.shape, num_legal.dtype) == ((NUM_GAMES,), np.int32)
        for row in np.flatnonzero(midgame.termination == ONGOING):
            listed = legal_actions[row, : num_legal[row]]
            np.testing.assert_array_equal(
                listed, midgame.legal_actions[row, : midgame.num_legal[row]]
            )
        assert ((legal_actions >= 0) & (legal_actions < game.spec.num_actions)).all()

    def test_planes_have_no_bit_off_the_board(self, game, midgame):
        height, width = game.spec.board_shape
        on_board = np.uint64(2 ** (height * width) - 1)
        assert not (game.planes(midgame.state) & ~on_board).any()

    def test_an_empty_batch_is_fine(self, game):
        batch = game.allocate(0)
        game.step(batch, np.zeros(0, np.int16), np.zeros(0, np.uint64))
        assert game.planes(batch.state).shape == (0, game.spec.all_planes)
        assert len(batch) == 0

    def test_players_take_turns(self, game):
        batch = self.start(game)
        for ply in range(10):
            expected = ply % 2 if game.spec.num_players == 2 else 0
            alive = batch.termination == ONGOING
            assert (game.side_to_move(batch.state)[alive] == expected).all()
            self.random_ply(game, batch, ply)

    def test_states_survive_text(self, game, midgame):
        for state in midgame.state:
            text = game.format_state(state)
            again = game.parse_state(text)
            assert (again.shape, again.dtype) == (state.shape, state.dtype)
            assert game.format_state(again) == text

    def test_actions_survive_text(self, game, midgame):
        for row in range(0, NUM_GAMES, 4):
            state = midgame.state[row]
            for action in midgame.legal_actions[row, : midgame.num_legal[row]].tolist():
                assert game.parse_action(state, game.format_action(state, action)) == action

    def test_bad_states_are_position_errors(self, game, bad_states):
        for text in bad_states:
            with pytest.raises(PositionError) as raised:
                game.parse_state(text)
            assert "\n" not in str(raised.value)

    def test_bad_actions_are_illegal_move_errors(self, game, bad_actions):
        state = game.initial_states(keys(1))[0]
        for text in bad_actions:
            with pytest.raises(IllegalMoveError) as raised:
                game.parse_action(state, text)
            assert repr(text) in str(raised.value)
            assert "\n" not in str(raised.value)

    def afterstates(self, game, batch):
        """The games of ``batch`` that go on, at their afterstates; skips games without."""
        if not game.spec.is_stochastic:
            pytest.skip("a game without chance")
        after = batch.take(np.flatnonzero(batch.termination == ONGOING))
        plies = np.zeros(len(after), np.int32)
        game.step(after, random_legal_actions(after, keys(len(after)), plies))
        return after

    def test_event_probabilities_sum_to_1_where_nature_moves(self, game, midgame):
        probabilities = game.event_probabilities(midgame.state)
        assert probabilities.shape == (NUM_GAMES, game.spec.max_legal)
        assert probabilities.dtype == np.float32
        assert not probabilities.any()
        after = self.afterstates(game, midgame)
        probabilities = game.event_probabilities(after.state[:, : game.spec.record_words])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)
        is_listed = np.arange(game.spec.max_legal) < after.num_legal[:, None]
        np.testing.assert_array_equal(probabilities > 0, is_listed)

    def test_afterstates_go_on_and_list_distinct_events(self, game, midgame):
        after = self.afterstates(game, midgame)
        assert (after.termination == ONGOING).all()
        assert (after.num_legal > 0).all()
        for row, count in enumerate(after.num_legal):
            events = after.legal_actions[row, :count]
            assert len(np.unique(events)) == len(events)
            assert (events >= 0).all()
        listed, counts = game.legal_actions(after.state[:, : game.spec.record_words])
        np.testing.assert_array_equal(counts, after.num_legal)
        for row, count in enumerate(counts):
            np.testing.assert_array_equal(listed[row, :count], after.legal_actions[row, :count])
            state = after.state[row]
            for event in listed[row, :count].tolist():
                assert game.parse_action(state, game.format_action(state, event)) == event

    def test_an_afterstate_survives_reset_and_text(self, game, midgame):
        after = self.afterstates(game, midgame)
        again = game.allocate(len(after))
        game.reset(again, np.arange(len(after)), after.state)
        again.ply[:], again.reward[:] = after.ply, after.reward
        assert_rows_equal(again, after, np.arange(len(after)))
        for state in after.state:
            np.testing.assert_array_equal(game.parse_state(game.format_state(state)), state)

    def test_a_move_and_its_event_are_one_ply_with_the_reward_at_the_move(self, game, midgame):
        after = self.afterstates(game, midgame)
        whole = midgame.take(np.flatnonzero(midgame.termination == ONGOING))
        plies = np.zeros(len(after), np.int32)
        chance = chance_words(len(after), 5)
        game.step(whole, random_legal_actions(whole, keys(len(after)), plies), chance)
        np.testing.assert_array_equal(after.ply, whole.ply)
        np.testing.assert_array_equal(after.reward, whole.reward)
        reached = np.zeros(len(after), bool)
        for column in range(int(after.num_legal.max())):
            events = np.where(column < after.num_legal, after.legal_actions[:, column], -1)
            child = snapshot(after)
            game.step(child, events.astype(np.int16))
            is_played = events >= 0
            assert not child.reward[is_played].any()
            np.testing.assert_array_equal(child.ply, whole.ply)
            reached |= is_played & (child.state == whole.state).all(axis=1)
        assert reached.all(), "the event drawn is one of the events listed"
