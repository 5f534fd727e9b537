"""Do the tests notice?  Two hundred and fifty faults made by hand, one at a time, against the tests that should catch them.

    python tests/mutants.py WHERE                        # all faults, in a copy of the tree that is built in WHERE
    python tests/mutants.py WHERE --only 3,17 --slow     # some, with the tests that are marked slow
    python tests/mutants.py WHERE --tests DIR            # the tests of another edition
    python tests/mutants.py WHERE --sample 40            # so many, drawn at random
    python tests/mutants.py --stale                      # only say which are stale

A fault replaces an expression, or a line, by another one.  All of them are in the copy at once, each asleep until
ONLINEKERNELS_FAULT has its number, so that one build serves all.  The file of a fault is a hint: its text is looked for in
the whole package.  A fault whose text is not in one place, or whose tests are gone, is stale: write it anew.  The copy
without any fault must pass; what it does not pass is told first.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIMIT = 900  # seconds for the tests of one fault; who hangs is caught

# (file, tests that should notice, [(text, what it becomes), ...]); a line that becomes "pass" is left out
FAULTS = [
    ("losses.h", "losses oracle", [
        ("(margin > 0 ? margin : 0.0) - (code == OK_NU_HINGE ? loss->nu * s : 0.0)", "(margin > 0 ? margin : 0.0)"),
        ("y * z <= s ? -y : 0.0", "y * z < s ? -y : 0.0"),
        ("z < s ? -1.0 : 0.0", "z <= s ? -1.0 : 0.0"),
        ("(z < y ? s : 1.0 - s) * delta", "(z < y ? 1.0 - s : s) * delta"),
        ("delta - 0.5 * s", "delta - s"),
        ("size <= s ? delta / s : ok_sign(delta)", "size <= s ? delta : ok_sign(delta)"),
        ("loss->nu - (fabs(y - z) > s ? 1.0 : 0.0)", "(fabs(y - z) > s ? 1.0 : 0.0) - loss->nu"),
        ("-y * ok_expit(-y * z)", "-y * ok_expit(y * z)"),
    ]),
    ("losses.h", "losses implicit oracle", [
        ("size * delta / (1.0 + size * k)", "size * delta / (1.0 + k)"),
        ("ok_clip(delta / k, -ok_loss_cap(loss, -1.0) * size, ok_loss_cap(loss, 1.0) * size)",
         "ok_clip(delta / k, -ok_loss_cap(loss, 1.0) * size, ok_loss_cap(loss, -1.0) * size)"),
        ("size * delta / (s + size * k)", "size * delta / (1.0 + size * k)"),
        ("fabs(alpha) > 1e-12 * natural ? alpha : 0.0", "alpha"),
        ("ok_expit(z) * ok_expit(-z)", "ok_expit(z)"),
        ("ok_clip((s - z) / k, 0.0, size)", "ok_clip((s - z) / k, 0.0, 2.0 * size)"),
    ]),
    ("moves.h", "oracle implicit", [
        ("1.0 - eta * regularization", "1.0 - 0.5 * eta * regularization"),
        ("1.0 / (1.0 + eta * regularization)", "1.0 - eta * regularization"),
        ("k + offsets / shrink", "k + offsets"),
        ("shift.offset = alpha / shrink", "shift.offset = alpha"),
        ("-eta * derivative", "eta * derivative"),
    ]),
    ("moves.h", "margin_step oracle long_streams", [
        ("memory * *gap_weight + weight", "*gap_weight + weight"),
        ("loss->scalar - step * weight * gradient", "loss->scalar - step * gradient"),
        ("scalar > 0.1 * shared ? scalar : 0.1 * shared", "scalar"),
    ]),
    ("moves.pxd", "oracle outputs streams defaults", [
        ("step.rate * sqrt(step.delay / (step.delay + <double> t))", "step.rate * sqrt(step.delay / (step.delay + <double> t + 1))"),
        ("factor if factor > 0.5 else 0.5", "factor if factor > 0.25 else 0.25"),
        ("1.0 / stiffness if eta * stiffness > 1.0 else eta", "eta"),
        ("shrink * memory * old.product - eta * f_g - eta * memory * chi_f", "shrink * memory * old.product - eta * f_g"),
        ("-shrink * (1.0 - shrink)", "-(1.0 - shrink)"),
    ]),
    ("moves.pxd", "margin", [
        ("1.0 - radius / length", "1.0 - radius"),
        ("y * f > 0.0", "y * f >= 0.0"),
        ("(product - y * f) / rest", "(product + y * f) / rest"),
        ("0.5 / size if size > 0.0 else 1e300", "1.0 / size if size > 0.0 else 1e300"),
        ("y / view.k", "y"),
        ("old + 2.0 * shrink * alpha * view.bare + new", "old + 2.0 * alpha * view.bare + new"),
    ]),
    ("frame.pxd", "interface oracle long_streams", [
        ("rest / frame.p[i][i]", "rest"),
        ("smallest < 1e-100 or largest > 1e4 * smallest", "smallest < 1e-100"),
        ("entry > largest", "False"),
    ]),
    ("budgets.pyx", "terms budgets oracle", [
        ("self.oldest() if self.n >= self.most else NOBODY", "self.oldest() if self.n > self.most else NOBODY"),
        ("terms.dictionary.born(self.oldest()) < t + 1 - self.length(t + 1)",
         "terms.dictionary.born(self.oldest()) < t - self.length(t + 1)"),
        ("CANDIDATE if size < self.key[self.heap[0]] else self.heap[0]", "CANDIDATE if size <= self.key[self.heap[0]] else self.heap[0]"),
        ("terms.dictionary.born(a) < terms.dictionary.born(b)", "terms.dictionary.born(a) > terms.dictionary.born(b)"),
        ("child + 1 < self.n and self.goes_before(terms, self.heap[child + 1], self.heap[child])", "False"),
        ("<long long> length if length > <double> self.steps else self.steps", "<long long> length"),
        ("lot % <unsigned long long> self.n", "lot % <unsigned long long> (self.n - 1)"),
        ("pow(<double> t, self.exponent) - 1e-9", "pow(<double> t, self.exponent)"),
    ]),
    ("terms.pyx", "long_streams terms modelfile outputs mutated_files", [
        ("fabs(value) < TINY", "False"),
        ("column[term.labels[k] * capacity] = term.stored[channel * n + k]", "column[term.labels[k] * capacity] = term.stored[k]"),
        ("ok_axpy(-c, values, totals + self.pair(slot)[self.pairs.capacity] * m, m)", "pass"),
        ("-term.stored[2 * channel]", "term.stored[2 * channel]"),
        ("0 <= pairs.min() and pairs.max() < labels", "True"),
        ("len(birthdays) > self.most", "False"),
    ]),
    ("kernels.pyx", "kernels oracle input refusals errors", [
        ("square + 2.0 * tilt + self.origin_square", "square + tilt + self.origin_square"),
        ("far and square < np.inf", "False"),
        ("1.0 / sqrt(stack[top]) if stack[top] > 0 else 0.0", "1.0 / stack[top] if stack[top] > 0 else 0.0"),
        ("self.index(x) * (op.size + 1)", "self.index(x)"),
        ("own_facts[TILT * own_stride] + self.origin_square", "own_facts[TILT * own_stride]"),
    ]),
    ("functions.pyx", "outputs labels", [
        ("self.kappa(a, a) + self.kappa(b, b) - 2.0 * self.kappa(a, b)", "self.kappa(a, a) + self.kappa(b, b) - self.kappa(a, b)"),
        ("0.5 * (nodes[self.place[i]] - nodes[self.place[y]])", "nodes[self.place[i]] - nodes[self.place[y]]"),
        ("self.table[y * self.n + i]", "self.table[i * self.n + i]"),
        ("nodes[self.parent[i]] += nodes[i]", "nodes[self.parent[i]] = nodes[i]"),
        ("self.kernel[a * self.n + b]", "self.kernel[a * self.n + a]"),
    ]),
    ("transforms.pyx", "scaling target_scaling sparse", [
        ("deviation > 1e-14 * size and deviation > 0.0", "deviation > 0.0"),
        ("weight * delta / count", "delta / count"),
        ("memory * square[0] + weight * delta * (x - mean[0])", "square[0] + weight * delta * (x - mean[0])"),
        ("self.count, self.few = self.count_before, self.few_before", "pass"),
        ("fabs(change) / sqrt(2.0)", "fabs(change)"),
    ]),
    ("posterior.pyx", "recursive recursive_answers", [
        ("self.noise / weight if weight > 0.0 else 0.0", "self.noise"),
        ("(1.0 if beyond else 0.0) - (1.0 - COVERAGE[level])", "(1.0 if beyond else 0.0) - COVERAGE[level]"),
        ("fmin(square - 1.0, 5.0)", "square - 1.0"),
        ("sqrt(e.variance + self.noise) * factor * self.tracked(output, level, share)",
         "sqrt(e.variance) * factor * self.tracked(output, level, share)"),
        ("(1.0 - share) * here + share * there", "here"),
        ("(1.0 if c == label else -1.0)", "(1.0 if c == label else 0.0)"),
    ]),
    ("posterior.pyx", "recursive recursive_answers", [
        ("memory ** (0.5 * k)", "memory ** k"),
        ("self.fade[s + 1] * w.mean[y]", "w.mean[y]"),
        ("w.version != self.version", "False"),
        ("memcmp(w.new_key, w.key, size * sizeof(double))", "0"),
        ("memset(self.K + s * CHECKPOINT, 0, CHECKPOINT * sizeof(double))", "pass"),
        ("own + late * np.sum(a * b, axis=1) - np.sum(c * c, axis=1)", "own + late * np.sum(a * b, axis=1)"),
    ]),
    ("triangles.h", "recursive recursive_answers", [
        ("c * S[i * stride + j] - W[i * w_stride + j]", "S[i * stride + j] - W[i * w_stride + j]"),
        ("rest -= a[r * stride + j] * x[j]", "rest -= x[j]"),
        ("rest / a[r * stride + i + r]", "rest"),
    ]),
    ("triangles.h", "factor budgets", [
        ("over[r] = c[k] * b - s[k] * a", "over[r] = c[k] * b + s[k] * a"),
        ("corner[j] -= a[r * stride + n - 4 + j] * corner[r]", "corner[j] -= a[r * stride + n - 4 + j]"),
        ("s[k] = from[k + 1] / length", "s[k] = -from[k + 1] / length"),
    ]),
    ("rules.pyx", "lasvm margin", [
        ("e.view.target * self.penalty * e.view.weight", "e.view.target * self.penalty"),
        ("gradient - self.gradient()[pair.down] > self.tolerance", "gradient - self.gradient()[pair.down] > 0.0"),
        ("k_i[i] + k_j[j] - 2.0 * k_i[j]", "k_i[i] + k_j[j] - k_i[j]"),
        ("0.5 * (g[pair.up] + g[pair.down])", "g[pair.up]"),
        ("rise * k_i[slot] - fall * k_j[slot]", "rise * k_i[slot]"),
        ("self.terms.drop(slot)", "pass"),
    ]),
    ("budgets.pyx", "budgets terms", [
        ("fmax(0.0, own - ok_dot(look.way, look.way, n))", "own"),
        ("look.shares[i] * look.shares[i] / look.residual", "look.shares[i] / look.residual"),
        ("fmax(self.tolerance, self.floor)", "self.floor"),
        ("least *= look.residual", "pass"),
        ("value * column[n + 1]", "value * column[n]"),
        ("others.bound[j] <= least * NEARLY and (found == n or self.born(terms, j) < self.born(terms, found))",
         "others.bound[j] <= least * NEARLY"),
        ("share * there[j] + (1.0 - share) * here[j] - apart", "share * there[j] + (1.0 - share) * here[j]"),
        ("self.shift /= scale", "pass"),
        ("15.0 / 32.0 * (self.won + won_by(term)) - self.damage", "0.5 * (self.won + won_by(term)) - self.damage"),
        ("phi * (square * phi + 2.0 * sigma)", "phi * square"),
        ("looks.side[slot] * (scores[0] - gone[0] * k)", "looks.side[slot] * scores[0]"),
        ("score > best", "score < best"),
        ("terms.dictionary.point_moved(slot)", "pass"),
    ]),
    ("engine.pyx", "margin budgets oracle outputs", [
        ("residual * a[l] * K_a[l]", "residual * a[l] * a[l]"),
    ]),
    ("engine.pyx", "margin errors labels progressive_labels interface budgets oracle outputs", [
        ("self.offset_sum[l] += self.offset[l]", "pass"),
        ("e.term.enters and w.piece.own[i] != 0.0", "e.term.enters"),
        ("self.now.norms.square <= self.radius * self.radius", "self.now.norms.square <= self.radius"),
        ("1.0 if j == 0 else 0.0", "1.0"),
        ("self.now.norms.square += new_labels * self.now.ahead.square", "pass"),
        ("self.now.norms = self.before_joining", "pass"),
    ]),
    ("errors.py", "errors refusals", [
        ("error.rows_learned = rows", "error.rows_learned = rows + 1"),
    ]),
    ("engine.pyx", "errors scaling interface progressive_labels chunks sparse recursive_answers", [
        ("self.hypothesis.undo_joining(self.joined_before)", "pass"),
        ("self.scaler.commit(n)", "pass"),
        ("weight == 0.0 and self.leaves_out", "weight == 0.0"),
        ("trace.deviations[i] = sqrt(e.variance)", "trace.deviations[i] = e.variance"),
    ]),
    ("rules.pyx", "outputs oracle labels", [
        ("value[j] == largest and self.goes_first(l, best)", "value[j] == largest"),
        ("view.weight * loss_curvature(&now.loss, view.score, view.target)", "loss_curvature(&now.loss, view.score, view.target)"),
        ("rho * distance[first + j] + shrink * f[first + j] + offset[first + j]", "rho * distance[first + j] + f[first + j] + offset[first + j]"),
        ("e.probability[l] - (1.0 if l == y else 0.0)", "e.probability[l]"),
        ("k * self.outputs.square_between(label, best)", "2.0 * k"),
    ]),
    ("dictionary.pyx", "terms chunks budgets lasvm oracle", [
        ("self.patch(piece, i, slot)", "pass"),
        ("self.n_holes += 1", "pass"),
        ("(<double*> piece.own_inner)[i * rows + row] if other < 0 else wide[row * stride + from_]", "wide[row * stride + from_]"),
        ("piece.l1[row * stride + column] = piece.own_l1[i * rows + row]", "pass"),
    ]),
    ("weights.pyx", "interface per_feature maps sparse", [
        ("w.piece.dense_row[w.piece.index[k]] = 0.0", "pass"),
        ("reached > 1.0", "False"),
        ("steps[:self.width] = self.steps", "pass"),
        ("self.map.admit(w.piece)", "pass"),
        ("f_change[l] = v_change[l] = 0.0", "pass"),
    ]),
    ("maps.pyx", "maps", [
        ("sqrt(2.0 * scale / size)", "sqrt(scale / size)"),
        ("self.phases - fill * frequencies[self.n_features:].sum(axis=0)", "self.phases"),
        ("not np.array_equal(state[\"frequency\"], self.frequencies[:, 0])", "False"),
        ("self.scale = sqrt(scale)", "self.scale = scale"),
    ]),
    ("trees.pyx", "additive", [
        ("min(ok_count_below(block + HIGH, x[0], FAN), size - 1)", "min(ok_count_below(block + HIGH, x[0], FAN), size)"),
        ("self.height[j] += 1", "pass"),
        ("1.0 / (high - low)", "1.0 / high"),
    ]),
    ("additive.h", "additive", [
        ("low2 * (low / 3.0 + gap / 2.0) + (1.0 + pq)", "low2 * (low / 6.0 + gap / 2.0) + (1.0 + pq)"),
        ("low / 2.0 + gap / 3.0", "low / 2.0 + gap / 2.0"),
        ("-k->c[s] * s / (2 * z - s + 2)", "k->c[s] * s / (2 * z - s + 2)"),
    ]),
    ("bank.pyx", "bank", [
        ("(store.clock[m] + store.count[m]) % store.slots", "store.count[m] % store.slots"),
        ("born[other * OK_LANES + lane] < born[slot * OK_LANES + lane]", "born[other * OK_LANES + lane] <= born[slot * OK_LANES + lane]"),
        ("store.t[first + lane] + 1", "store.t[first + lane]"),
        ("next[lane] < starts[lane + 1] and not failed[lane]", "next[lane] < starts[lane + 1]"),
        ("outcome.row < 0 or rows[lane] < outcome.row", "outcome.row < 0"),
        ("lanes.stored[lane] = lanes.alpha[lane]", "pass"),
    ]),
    ("lock.pyx", "threads", [
        ("len(self.inside) > 0 or self.due > 0", "self.is_alone"),
        ("self.is_alone or len(self.learners) > 0 and me not in self.learners", "False"),
        ("{me: self.inside[me]} if me in self.inside else {}", "self.inside"),
        ("purpose != LOOK", "False"),
    ]),
    # ---- Python ----
    ("base/validation.py", "frames_and_masks refusals input sparse sklearn", [
        ("finite and not all_finite(X)", "False"),
        ("isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part)", "False"),
        ("X.sum_duplicates()", "pass"),
        ("names is None or expected is None or names == expected", "True"),
        ("np.array(x)", "x"),
        ("np.isfinite(X.data).all()", "True"),
    ]),
    ("labelsets.py", "labels label_values", [
        ("zero != negative", "False"),
        ("np.where(scores[:, 0] > 0, 1.0, -1.0)", "np.where(scores[:, 0] >= 0, 1.0, -1.0)"),
        ("(scores[:, 0] > 0).astype(np.intp)", "(scores[:, 0] >= 0).astype(np.intp)"),
        ("unknown.any()", "False"),
    ]),
    ("labelsets.py", "labels label_values progressive_labels outputs modelfile", [
        ("np.concatenate([[known], reached[:-1]])", "reached"),
        ("answers[before == 0] = None", "pass"),
        ("best if self._shown is None else self._shown[best]", "best"),
        ("len(distinct_labels(order)) != len(order)", "False"),
    ]),
    ("plan.py", "parameters refusals errors target_scaling margin implicit", [
        ("largest * self.regularization > 1", "False"),
        ("self.offset and self.loss.task == \"novelty\"", "False"),
        ("start.hypothesis.intercept().any() and not self.offset", "False"),
        ("self.scale_target and self.loss.task != \"regression\"", "False"),
        ("copy.deepcopy((loss, kernel, budget, labels, rule))", "(loss, kernel, budget, labels, rule)"),
    ]),
    ("state.py", "target_scaling labels interface progressive_labels sklearn", [
        ("len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1))", "len(y) / (len(counts) * np.maximum(counts, 1))"),
        ("np.abs(scores - rho) <= rounding", "np.abs(scores - rho) <= 0"),
        ("self.engine.target_scaler.restore(start.target_scaler.state())", "pass"),
        ("chosen if sample_weight is None else chosen * sample_weight", "chosen"),
    ]),
    ("estimator.py", "contracts interface input initial errors threads long_streams parameters", [
        ("epoch * len(X)", "0"),
        ("float(np.quantile(scores, state.loss.nu))", "float(np.quantile(scores, 1 - state.loss.nu))"),
        ("is_new and earlier + learned == 0", "False"),
        ("x = x.copy()", "pass"),
        ("self._state is not None and name != \"_state\"", "False"),
        ("State.from_dict(kept[\"_state\"])", "initial._state"),
        ("np.where(residual == 0, 1.0, 0.0)", "np.where(residual == 0, 0.0, 1.0)"),
    ]),
    ("base/files.py", "modelfile", [
        ("header.get(\"digest\") != digest", "False"),
        ("type(header.get(\"version\")) is not int or header[\"version\"] != VERSION", "False"),
        ("os.unlink(temporary)", "pass"),
        ("type(plan[\"rule\"]) is not (algorithm._rule or type(None))", "False"),
    ]),
    ("base/files.py", "modelfile", [
        ("zlib.crc32(data) != crc", "False"),
        ("math.prod(shape) * dtype.itemsize != len(data) - start", "False"),
        ("total > len(content)", "False"),
    ]),
    ("evaluate/measures.py", "evaluate evaluate_measures", [
        ("y * scores <= 0", "y * scores < 0"),
        ("guesses != y", "guesses == y"),
        ("np.abs(y - scores) > margins", "np.abs(y - scores) >= margins"),
    ]),
    ("evaluate/learners.py", "evaluate evaluate_learners", [
        ("row, label = row.copy(), label.copy()", "pass"),
        ("(-1 if score == 0.0 else self._code_of(answer))", "self._code_of(answer)"),
        ("len(self.queue) > self.delay", "len(self.queue) >= self.delay"),
    ]),
    ("parallel/combining.py", "parallel", [
        ("weights / weights.sum()", "weights"),
        ("np.argsort(-age, kind=\"stable\")", "np.arange(len(age))"),
        ("sum(other.hypothesis.t for other in states)", "0"),
    ]),
    ("bank.py", "bank threads", [
        ("np.where(active, numbers, -1)", "numbers"),
        ("scores >= rho - rounding", "scores >= rho"),
        ("any(key != key for key in newcomers)", "False"),
        ("len(index) != n", "False"),
    ]),
    ("cli/tables.py", "commandline_tables commandline_streams", [
        ("self.arguments.decimal == \".\" and np.isfinite(values).all()", "self.arguments.decimal == \".\""),
        ("number, lines.is_between = reader.line_num + 1, True", "number, lines.is_between = reader.line_num + 1, False"),
        ("(header, last) != (start[\"header\"], start[\"last\"])", "header != start[\"header\"]"),
        ("\"_\" not in \"\".join(texts)", "True"),
        ("self._check_length(self.length)", "pass"),
        ("io.IncrementalNewlineDecoder(decoder, translate=True)", "io.IncrementalNewlineDecoder(decoder, translate=False)"),
    ]),
    ("cli/options.py", "commandline commandline_tables", [
        ("os.path.samestat(read, written)", "source == path"),
        ("known is not None and len(known)", "False"),
    ]),
    ("cli/learn.py", "commandline commandline_streams", [
        ("self.model is None or self._t() != self.learned", "self.model is None"),
        ("last // every < self.figures.rows // every", "True"),
        ("tempfile.TemporaryFile(dir=folder).close()", "pass"),
        ("len(y) < enough", "False"),
    ]),
    ("cli/figures.py", "commandline", [
        ("is_hit = prediction == label and not is_tie", "is_hit = prediction == label"),
        ("len(self.counts) == 2 and len(classes) == 2", "len(classes) == 2"),
        ("self.rows + np.arange(len(y))", "self.rows + 1 + np.arange(len(y))"),
    ]),
    ("bounds/norma.py", "bounds", [
        ("squared_path / decay + 2 * norm * path", "squared_path / decay + norm * path"),
        ("mistakes_at_best_scale(full, full, learner_margin + full * radius ** 2 / 2, energy, radius, margin, loss)",
         "mistakes_at_best_scale(full, full, learner_margin, energy, radius, margin, loss)"),
    ]),
    ("scaling.py", "scaling", [
        ("validation.refuse_masked(x, \"x\")", "pass"),
        ("middle, fresh = (fine + too_many) // 2, scaler.copy()", "middle, fresh = (fine + too_many) // 2, scaler"),
    ]),
    # ---- What listens to members, and what comes before and beside them ----
    ("combiners.pyx", "combiners stacking frontdoor selftuned", [
        ("n * (1.0 - memory) * prior", "(1.0 - memory) * prior"),
        ("factor * (self.start - w[k])", "factor * (0.0 - w[k])"),
        ("p[label] * p[rival]", "1.0"),
        ("c != label and p[c] > p[rival]", "c != label and p[c] < p[rival]"),
        ("(1.0 - share) * belief[i] / total + share / n", "belief[i] / total"),
        ("1.0 if fabs(error) < 4.0 else 4.0 / fabs(error)", "1.0"),
        ("self.errors.t >= FEW_ROWS and least <= largest", "False"),
        ("0.0 if not enabled[i] else d[i] - mean if self.about_mean else d[i] - self.origin_value",
         "d[i] - mean if self.about_mean else d[i] - self.origin_value"),
        ("self.t >= FEW_ROWS and square > 16.0 * size", "square > 16.0 * size"),
        ("total += trust[i] if enabled[i] else 0.0", "total += trust[i]"),
        ("self.loss(F + i * outputs, target, j, classes, size, counts[t]) if enabled[i] else own",
         "self.loss(F + i * outputs, target, j, classes, size, counts[t])"),
        ("not np.array_equal(matrices, np.swapaxes(matrices, -1, -2))", "False"),
        ("not self.any_odds or joined != 2", "not self.any_odds"),
        ("variance < least * (1.0 + precision * variance)", "False"),
        ("fmax(1e-12 * reach * reach, LEAST_SQUARE)", "1e-12 * reach * reach"),
        ("fmax(rest, SUREST)", "rest"),
        ("1.0 + 0.5 * self.line.w_data[1]", "1.0 - 0.5 * self.line.w_data[1]"),
        ("second / (1.0 + second) + APART", "0.0"),
        ("sums[1:] > sums[0] * (1 + 1e-9)", "sums[1:] < 0.0"),
        ("1.0 if j == <Py_ssize_t> y[t] else -1.0", "1.0 if j == <Py_ssize_t> y[t] else 0.0"),
        ("FREQUENCIES * found[0] + (alarm and label == rare)", "FREQUENCIES * found[0] + (label == rare)"),
        ("self.n, self.first = KEPT, self.first + 1", "self.n = KEPT"),
    ]),
    ("transforms.pyx", "transforms encoding", [
        ("memcpy(row, before, d * sizeof(double))", "pass"),
        ("self.t -= self.opened_rows - n", "pass"),
        ("n < self.opened", "False and n < self.opened"),
        ("put_in_order(self.ordered_data + j * self.size, kept, True, row[j], before[j])", "pass"),
        ("fabs(mean - first) <= fabs(mean - second)", "fabs(mean - first) >= fabs(mean - second)"),
        ("memory[j] * count[j] + 1.0", "count[j] + 1.0"),
        ("elapsed[i] >= 0", "True"),
    ]),
    ("encoding.py", "encoding", [
        ("hash_of(word) % slots", "0"),
        ("(instants - 4 * DAY) % (7 * DAY)", "instants % (7 * DAY)"),
        ("0.0 if kind == \"date\" else state.memory", "state.memory"),
        ("mean, count, shown = mean.copy(), count.copy(), shown.copy()", "pass"),
        ("before.advanced(table[:rows])[0] if part else after", "after"),
    ]),
    ("smoother.pyx", "smoother", [
        ("distance[w.slots[s]] = w.own[i * w.m + s]", "pass"),
        ("self.say(slot, y, weight)", "pass"),
        ("nearest + NEGLIGIBLE / rate", "nearest + 1.0 / rate"),
        ("distance[i] if self.w[i] > 0.0 else INFINITY", "distance[i]"),
        ("(effective * square + running_square) / (effective + 1.0)", "square"),
        ("weight * (y[j] - scores[j]) ** 2", "(y[j] - scores[j]) ** 2"),
    ]),
    ("linalg.pyx", "selftuned", [
        ("0.5 * noise * root[i * (n + 1)] * spread[i]", "0.5 * noise * root[i * (n + 1)]"),
        ("outputs * float(np.log(np.asarray(work[2]).diagonal()).sum())", "float(np.log(np.asarray(work[2]).diagonal()).sum())"),
    ]),
    ("evidence.h", "selftuned", [
        ("-0.5 * forgetting * fabs(times[i] - times[j])", "-forgetting * fabs(times[i] - times[j])"),
    ]),
    ("algorithms/evidence.py", "selftuned", [
        ("np.insert(slopes, d, slopes[:d].sum())", "np.insert(slopes, d, 0.0)"),
        ("q / self.deviation**2", "q / self.deviation"),
        ("new <= value + 1e-4 * length * slope and np.isfinite(gradient).all()", "np.isfinite(gradient).all()"),
    ]),
    ("selftuned.pyx", "selftuned", [
        ("tuned > AHEAD * plain", "True"),
        ("k < m - 1", "k > 0"),
        ("self.first_loss = self.t", "pass"),
        ("self.weigh(self.enabled, self.shares)", "pass"),
        ("self.replay(member, refresh.t, self.t)", "pass"),
        ("self.steps, self.done, self.members = None, 0.0, None", "self.steps = None"),
        ("refresh.first if refresh.alarm else self.began", "self.began"),
        ("error = (scores[j] - target) / (self.unit[j] if self.targets else 1.0)", "error = scores[j] - target"),
    ]),
    ("algorithms/selftuned.py", "selftuned", [
        ("(None, None) if alarm or old.metric is None else (old.axes, old.settings)", "(None, None) if old.metric is None else (old.axes, old.settings)"),
        ("stays and old.evidence(X[there], y[there], *sample[2:], sample[1]) < value + WORTH", "False"),
        ("max(noise, least)", "noise"),
    ]),
    ("targets.pyx", "selftuned", [
        ("weight <= 0.0 or self.frozen", "weight <= 0.0"),
    ]),
    ("ensemble.pyx", "blocks stacking", [
        ("self.until < n or n > 0 and self.diverged", "self.until < n"),
        ("enabled[0] = self.until > i", "enabled[0] = True"),
        ("self.labels[code] >= known or self.codes[self.labels[code]] != code", "self.labels[code] >= known"),
        ("tries == TRIES or not self.backend.test(i, self.raw, NULL)", "tries == TRIES"),
        ("isinstance(error, MemoryError) or not isinstance(error, Exception)", "not isinstance(error, Exception)"),
        ("member.disabled and member.text is None", "False"),
    ]),
    ("engine.pyx", "blocks", [
        ("isinstance(e.error, Exception) and not isinstance(e.error, MemoryError)", "isinstance(e.error, Exception)"),
    ]),
    ("detector.py", "frontdoor", [
        ("rows[:, places] = 0.0", "pass"),
    ]),
    ("composite.py", "smoother", [
        ("copy.deepcopy({\"loss\": self._own_loss(), **settings})", "{\"loss\": self._own_loss(), **settings}"),
    ]),
    ("composite.py", "smoother stacking", [
        ("state.labels.joined_before(y, joined)[:, None]", "scores.shape[1]"),
    ]),
    ("base/files.py", "modelfile commandline", [
        ("os.fsync(file.fileno())", "pass"),
        ("os.replace(temporary, path)", "__import__(\"shutil\").copyfile(temporary, path)"),
        ("f\"{path}.{os.getpid()}.{threading.get_ident()}.tmp\"", "f\"{path}.tmp\""),
        ("path = os.path.realpath(path)", "path = path"),
    ]),
]
NUMBERED = [(number, *fault) for number, fault in enumerate(
    ((name, old, new, tests.split()) for name, tests, pairs in FAULTS for old, new in pairs), 1)]
HEADER = """#pragma once
#include <stdlib.h>
static inline int ok_fault(int number)
{
    static int awake = -1;
    if (awake < 0) {
        const char *text = getenv("ONLINEKERNELS_FAULT");
        awake = text ? atoi(text) : 0;
    }
    return awake == number;
}
"""
IN_CYTHON = 'cdef extern from "faults.h" nogil:\n    bint ok_fault(int number) noexcept\n'


def with_fault(text, number, old, new, language):
    """A source with one more fault that sleeps in it; None if there is no place for it."""
    if text.count(old) != 1:
        return None
    at = text.index(old)
    begin, end = text.rindex("\n", 0, at) + 1, text.index("\n", at + len(old))
    before, rest = text[begin:at], text[at + len(old):end].split("#")[0].strip()
    awake = {"py": f'(__import__("os").environ.get("ONLINEKERNELS_FAULT") == "{number}")'}.get(language, f"ok_fault({number})")
    is_line = language != "h" and not before.strip() and not rest and not old.startswith(("np.", "(", "not ", "{"))
    if new == "pass" or is_line and re.match(r"[\w.,\[\]:* ]+ [-+*/]?= ", old):
        assert is_line, (number, old)
        return f"{text[:begin]}{before}if {awake}:\n{before}    {new}\n{before}else:\n{before}    {old}{text[at + len(old):]}"
    chosen = f"({awake} ? ({new}) : ({old}))" if language == "h" else f"(({new}) if {awake} else ({old}))"
    return text[:at] + chosen + text[at + len(old):]


def sleeping(package):
    """Sources with all faults in them, {path: text}, and the numbers of those that are stale."""
    sources = {path: path.read_text() for path in sorted(package.rglob("*.*")) if path.suffix in (".h", ".py", ".pyx", ".pxd")}
    stale, changed = [], {}
    for number, name, old, new, tests in NUMBERED:
        # A file of this name, or any other in the same language: a text may have moved.
        likely = [path for path in sources if path.as_posix().endswith("/" + name)]
        others = [path for path in sources if (path.suffix == ".h") == name.endswith(".h")]
        found = next((paths for paths in ([path for path in some if old in sources[path]] for some in (likely, others)) if paths), [])
        text = with_fault(sources[found[0]], number, old, new, found[0].suffix[1:]) if len(found) == 1 else None
        if text is None or not all(any((ROOT / "tests").rglob(f"test_{test}.py")) for test in tests):
            stale.append(number)
        if text is not None:
            sources[found[0]] = changed[found[0]] = text
    for path, text in changed.items():
        if path.suffix == ".py":
            compile(text, path, "exec")
    return changed, stale


def prepare(where):
    """Copy the tree, put all faults into it, and build."""
    if where.exists():
        shutil.rmtree(where)
    shutil.copytree(ROOT, where, ignore=shutil.ignore_patterns(".git", "build", "*.so", "__pycache__", ".hypothesis"))
    files, _ = sleeping(where / "onlinekernels")
    for path, source in files.items():
        if path.suffix == ".h":
            source = '#include "faults.h"\n' + source
        elif path.suffix in (".pyx", ".pxd"):
            first = re.search(r"^(from [\w.]+ c?import|c?import|cdef) ", source, re.M).start()
            source = source[:first] + IN_CYTHON + source[first:]
        path.write_text(source)
    (where / "faults").mkdir()
    (where / "faults" / "faults.h").write_text(HEADER)
    (where / "build").mkdir()
    environment = {**os.environ, "ONLINEKERNELS_CFLAGS": f"-g0 -O1 -I{where / 'faults'}"}
    done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=where, env=environment,
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-6000:])


def run(where, number, tests, slow, directory):
    """(outcome, seconds, first failing test) of the tests named for a fault."""
    paths = [path for name in tests for path in directory.rglob(f"test_{name}.py")]
    environment = {**os.environ, "ONLINEKERNELS_FAULT": str(number), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(where)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *(["-n0"] if has_xdist() else []),
               *(["-m", ""] if slow else []), *map(str, paths)]
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "caught", time.monotonic() - start, "it hangs"
    failing = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    outcome = {0: "MISSED", 1: "caught"}.get(done.returncode, "caught" if done.returncode < 0 else "trouble")
    if outcome == "trouble" and failing:
        outcome = "caught"  # while a test file is imported
    return outcome, time.monotonic() - start, failing[1] if failing else f"status {done.returncode}" if done.returncode else ""


def has_xdist():
    try:
        import xdist  # noqa: F401
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("where", type=pathlib.Path, nargs="?", help="a directory for the copy, which is made anew")
    parser.add_argument("--tests", type=pathlib.Path, help="tests of another edition")
    parser.add_argument("--only", help="numbers of faults, between commas")
    parser.add_argument("--sample", type=int, help="so many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stale", action="store_true", help="only say which faults have no place in the package any more")
    parser.add_argument("--slow", action="store_true", help="run tests that are marked slow, too")
    parser.add_argument("--again", action="store_true", help="use the copy that is there")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    _, stale = sleeping(ROOT / "onlinekernels")
    for number in stale:
        print(f"{number:4d} stale    {NUMBERED[number - 1][1]}: {NUMBERED[number - 1][2]}")
    if options.stale:
        return
    if options.where is None:
        parser.error("where?")
    where = options.where.resolve()
    if not options.again:
        prepare(where)
    directory = options.tests.resolve() if options.tests else where / "tests"
    wanted = [number for number in range(1, len(NUMBERED) + 1) if number not in stale]
    if options.only:
        wanted = [number for number in map(int, options.only.split(",")) if number in wanted]
    elif options.sample:
        wanted = sorted(random.Random(options.seed).sample(wanted, min(options.sample, len(wanted))))
    faults = [NUMBERED[number - 1] for number in wanted]
    if not options.only:
        outcome, seconds, by = run(where, 0, sorted({name for fault in faults for name in fault[4]}), options.slow, directory)
        print(f"   0 {'passed' if outcome == 'MISSED' else 'FAILS'}   {seconds:5.0f} s  without any fault  {by}", flush=True)
    totals = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run, where, fault[0], fault[4], options.slow, directory) for fault in faults]
        for (number, name, old, new, _), job in zip(faults, jobs):
            outcome, seconds, by = job.result()
            totals[outcome] = totals.get(outcome, 0) + 1
            print(f"{number:4d} {outcome:8s} {seconds:5.0f} s  {name}: {old[:60]} -> {new[:40]}  {by}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items())), f"of {len(faults)};", len(stale), "stale")


if __name__ == "__main__":
    main()
