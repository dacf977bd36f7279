"""The rows of the table of transformations: which tests stand behind each, and what is known of other tools.

Measured with Enzyme-JAX 0.0.16 `cpp_call`, NVIDIA Warp 1.19 on the CPU and a hand-written adjoint around
`jax.ffi.ffi_call`; read in the source of jax-triton.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN = "·"


@dataclass(frozen=True)
class Row:
    """`tests`: "module" or "module::test", separated by blanks; all of them have to pass. The other columns: what was
    measured or read of others."""

    name: str
    tests: str
    enzyme_jax: str = UNKNOWN
    warp: str = UNKNOWN
    triton: str = UNKNOWN
    by_hand: str = UNKNOWN


@dataclass(frozen=True)
class Group:
    name: str
    rows: tuple[Row, ...]


GROUPS = (
    Group(
        "Calls",
        (
            Row("eager", "test_calls::test_eager", "no", "yes", "yes", "yes"),
            Row("jit", "test_calls::test_jit", "yes", "yes", "yes", "yes"),
            Row(
                "eval_shape, make_jaxpr",
                "test_calls::test_eval_shape test_diagnostics::test_jaxpr_text",
                UNKNOWN,
                "yes",
                UNKNOWN,
                "yes",
            ),
            Row("ahead of time, cost_analysis", "test_diagnostics::test_ahead_of_time", UNKNOWN, "yes", UNKNOWN, "yes"),
            Row("one function for several platforms", "test_platforms", "CPU only", "yes", "GPU only"),
        ),
    ),
    Group(
        "First derivatives",
        (
            Row(
                "grad, value_and_grad",
                "test_reverse_mode::test_grad test_reverse_mode::test_value_and_grad_runs_the_kernel_once",
                "yes",
                "yes",
                "no",
                "yes",
            ),
            Row(
                "vjp, one pullback many times, in threads",
                "test_reverse_mode::test_one_pullback_many_times "
                "test_memory::test_a_pullback_can_be_called_often_and_in_threads",
                "crashes",
                "yes",
                "no",
                "yes",
            ),
            Row(
                "1,000 dropped pullbacks leak nothing",
                "test_memory::test_dropped_pullbacks_leak_nothing",
                "leaks",
                UNKNOWN,
                "no",
            ),
            Row(
                "jvp",
                "test_forward_mode::test_jvp test_forward_mode::test_jvp_in_one_argument",
                "yes",
                "no",
                "no",
                "no",
            ),
            Row("linearize", "test_forward_mode::test_linearize", "no", "no", "no", "no"),
            Row("linear_transpose", "test_forward_mode::test_linear_transpose", UNKNOWN, "yes", "no", "yes"),
            Row("jacfwd", "test_forward_mode::test_jacfwd", "no", "no", "no", "no"),
            Row("jacrev", "test_reverse_mode::test_jacrev", "no", "yes", "no", "yes"),
            Row("custom_vjp, custom_jvp around a kernel", "test_custom_rules", UNKNOWN, UNKNOWN, "yes", UNKNOWN),
        ),
    ),
    Group(
        "Higher derivatives",
        (
            Row("hessian, four orders of modes", "test_higher_order::test_hessian", "no", "no", "no", "no"),
            Row(
                "grad of grad, Hessian-vector products",
                "test_higher_order::test_hessian_vector_products",
                UNKNOWN,
                "no",
                "no",
                "no",
            ),
            Row(
                "linearize of grad, and its transpose",
                "test_higher_order::test_linearize_of_grad_and_vjp_of_linear",
                "no",
                "no",
                "no",
                "no",
            ),
            Row("third derivatives", "test_higher_order::test_third_derivatives", UNKNOWN, "no", "no", "no"),
        ),
    ),
    Group(
        "vmap",
        (
            Row(
                "over any subset of arguments, integers too",
                "test_vmap::test_any_subset_of_arguments test_vmap::test_other_axes "
                "test_arguments::test_batch_of_integers",
                "no",
                "yes",
                "no",
                "one by one",
            ),
            Row("nested", "test_vmap::test_nested_over_different_arguments", "no", "yes", "no", "one by one"),
            Row(
                "of grad, grad of vmap",
                "test_vmap::test_of_grad_and_grad_of test_vmap::test_grad_with_shared_arguments",
                "no",
                "yes",
                "no",
                "one by one",
            ),
            Row("of jvp", "test_vmap::test_of_jvp", "no", "no", "no", "no"),
            Row("of hessian", "test_higher_order::test_vmap_of_hessian", "no", "no", "no", "no"),
            Row(
                "of no elements",
                "test_vmap::test_empty_batch test_vmap::test_jacobians_of_empty_arrays",
                "no",
                UNKNOWN,
                "no",
            ),
            Row("spmd_axis_name", "test_sharding::test_spmd_axis_name", "no", UNKNOWN, "no"),
        ),
    ),
    Group(
        "Control flow",
        (
            Row(
                "scan, fori_loop, cond, switch, map: value, jvp, grad",
                "test_control_flow::test_value_and_both_modes",
                "grad of scan, of cond",
                "value, grad",
                "value",
                "value, grad",
            ),
            Row("while_loop", "test_control_flow::test_while_loop_in_forward_mode", UNKNOWN, "value", "value", "value"),
        ),
    ),
    Group(
        "Checkpointing",
        (
            Row("jax.checkpoint with policies", "test_checkpoint::test_gradients", "no", "yes", "no", "yes"),
            Row("hessian of it", "test_checkpoint::test_hessian", "no", "no", "no", "no"),
            Row(
                "tape saved, dropped, offloaded by name",
                "test_checkpoint::test_the_tape_is_saved_dropped_or_offloaded_by_name",
                "no",
                "no",
                "no",
                "no",
            ),
        ),
    ),
    Group(
        "What it costs",
        (
            Row(
                "donation: inout without a copy",
                "test_memory::test_donation_updates_in_place test_arguments::test_donated_inout",
            ),
            Row(
                "unused results cost nothing",
                "test_dead_code::test_a_gradient_that_nobody_reads_is_not_computed "
                "test_dead_code::test_tangents_that_nobody_reads_are_not_computed "
                "test_dead_code::test_a_kernel_that_nobody_reads_is_not_called "
                "test_dead_code::test_unused_results_do_not_change_the_others",
            ),
            Row(
                "no gradient asked for, no tape",
                "test_dead_code::test_an_argument_without_a_gradient_does_not_enlarge_the_tape "
                "test_reverse_mode::test_only_what_is_asked_for_is_computed",
            ),
            Row(
                "symbolic zeros, in and out",
                "test_dead_code::test_symbolic_zeros_go_in test_dead_code::test_symbolic_zeros_come_out "
                "test_reverse_mode::test_nobody_wants_the_gradient",
            ),
            Row(
                "the value comes with the gradient",
                "test_reverse_mode::test_value_and_grad_runs_the_kernel_once "
                "test_forward_mode::test_jvp_is_one_fused_call",
            ),
        ),
    ),
    Group(
        "Types and names",
        (
            Row(
                "integer arguments, float0",
                "test_dead_code::test_integers_have_float0_cotangents test_arguments::test_integers_have_no_gradient",
                "no",
            ),
            Row(
                "weak types",
                "test_dead_code::test_results_are_not_weakly_typed "
                "test_dead_code::test_python_numbers_are_weakly_typed",
            ),
            Row("debug.print beside it", "test_diagnostics::test_debug_print_beside_a_kernel"),
            Row("NaN, debug_nans", "test_diagnostics::test_debug_nans test_diagnostics::test_nans_are_values"),
            Row(
                "named scopes, names in programs and profiles",
                "test_diagnostics::test_the_kernels_name_is_in_programs "
                "test_diagnostics::test_the_kernels_name_is_in_traces",
            ),
        ),
    ),
    Group(
        "Many devices",
        (
            Row(
                "a batch over a mesh without gathering (auto and explicit axes)",
                "test_sharding::test_batches_of_every_kernel test_sharding::test_a_batch_stays_where_it_is "
                "test_sharding::test_two_maps_over_two_axes",
                "no",
                "gathers",
                "no",
                "gathers",
            ),
            Row(
                "what cannot be split is right",
                "test_sharding::test_what_cannot_be_split_is_right "
                "test_sharding::test_a_batch_that_does_not_divide_is_right",
            ),
            Row(
                "shard_map, gradient outside and inside",
                "test_sharding::test_shard_map_of_every_kernel test_sharding::test_gradient_outside_shard_map "
                "test_sharding::test_gradient_inside_shard_map",
                UNKNOWN,
                "yes",
                UNKNOWN,
                "needs more by hand",
            ),
            Row(
                "pmap",
                "test_sharding::test_pmap test_sharding::test_pmap_of_every_kernel",
                UNKNOWN,
                "yes",
                UNKNOWN,
                "yes",
            ),
            Row("two processes train one model (jax.distributed)", "test_processes"),
        ),
    ),
    Group(
        "Stored programs",
        (
            Row(
                "a gradient exported, run in a fresh process",
                "test_export::test_gradients_in_a_fresh_process",
                "no",
                "no",
                UNKNOWN,
                "the caller registers",
            ),
            Row(
                "persistent compilation cache",
                "test_export::test_the_persistent_compilation_cache_is_hit "
                "test_export::test_what_is_stored_is_the_same_in_every_process",
            ),
            Row("pickling, spawn", "test_export::test_kernels_go_to_a_spawned_process"),
        ),
    ),
    Group(
        "Flax",
        (
            Row(
                "NNX: train, split and merge, Orbax, remat",
                "test_flax::test_nnx_trains_as_with_jax_numpy "
                "test_flax::test_nnx_state_splits_merges_and_is_checkpointed",
            ),
            Row("NNX: ensembles by vmap", "test_flax::test_nnx_ensemble", "no", UNKNOWN, "no"),
            Row("Linen: train, Orbax, remat", "test_flax::test_linen_trains_as_with_jax_numpy"),
        ),
    ),
    Group(
        "Errors",
        (
            Row(
                "wrong arguments, by name, at the call",
                "test_arguments::test_what_does_not_fit test_arguments::test_what_is_no_array "
                "test_arguments::test_shapes_that_do_not_agree test_arguments::test_wide_kernel_in_a_narrow_jax",
            ),
            Row("a failing kernel raises with its name", "test_failures"),
        ),
    ),
)
