"""The compiled core: formulas, points, functions, budgets, rules, the run over a stream, and banks.

Letters before a number name the paper whose equation it is: K is Kivinen, Smola and Williamson, "Online Learning with
Kernels" (2004); I is Cheng et al., "Implicit Online Learning with Kernels" (2006); V is Vishwanathan, Schraudolph and
Smola, "Step Size Adaptation in Reproducing Kernel Hilbert Space" (2006); H is Herbster, "Learning Additive Models
Online with Fast Evaluating Kernels" (2001).
"""
