"""The words of the language that come in kinds."""

from __future__ import annotations

CASTS = (
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast addrspacecast"
).split()
FAST_MATH = frozenset("fast nnan ninf nsz arcp contract afn reassoc".split())
# Words between an opcode and its operands.
FLAGS = FAST_MATH | frozenset(
    "nuw nsw exact disjoint nneg samesign inbounds nusw tail musttail notail volatile atomic weak inalloca swifterror "
    "cleanup".split()
)
ATOMIC_ORDERINGS = frozenset("unordered monotonic acquire release acq_rel seq_cst".split())
# Linkage, visibility, storage class: what `internal` takes the place of.
LINKAGE = frozenset(
    "private internal available_externally linkonce weak common appending extern_weak linkonce_odr weak_odr external "
    "default hidden protected dllimport dllexport dso_local dso_preemptable".split()
)
LOCAL = frozenset(("internal", "private"))
UNNAMED = frozenset(("unnamed_addr", "local_unnamed_addr"))
CONVENTIONS = frozenset(
    "ccc fastcc coldcc ghccc cc webkit_jscc anyregcc preserve_mostcc preserve_allcc preserve_nonecc cxx_fast_tlscc "
    "swiftcc swifttailcc tailcc cfguard_checkcc x86_stdcallcc x86_fastcallcc x86_thiscallcc x86_vectorcallcc "
    "x86_regcallcc x86_intrcc x86_64_sysvcc win64cc intel_ocl_bicc arm_apcscc arm_aapcscc arm_aapcs_vfpcc "
    "msp430_intrcc avr_intrcc avr_signalcc ptx_kernel ptx_device spir_kernel spir_func amdgpu_vs amdgpu_gs amdgpu_ps "
    "amdgpu_cs amdgpu_hs amdgpu_ls amdgpu_es amdgpu_kernel amdgpu_gfx amdgpu_gfx_whole_wave amdgpu_cs_chain "
    "amdgpu_cs_chain_preserve hhvmcc hhvm_ccc aarch64_vector_pcs aarch64_sve_vector_pcs "
    "aarch64_sme_preservemost_from_x0 aarch64_sme_preservemost_from_x1 aarch64_sme_preservemost_from_x2 m68k_rtdcc "
    "graalcc riscv_vector_cc riscv_vls_cc cheriot_compartmentcallcc cheriot_compartmentcalleecc "
    "cheriot_librarycallcc".split()
)
PARAMETER_ATTRIBUTES = frozenset(
    "align alignstack allocalign allocptr byref byval captures dead_on_return dead_on_unwind dereferenceable "
    "dereferenceable_or_null elementtype immarg inalloca initializes inreg nest noalias nocapture noext nofpclass "
    "nofree nonnull noundef preallocated range readnone readonly returned signext sret swiftasync swifterror "
    "swiftself writable writeonly zeroext".split()
)
# Of functions and of calls, after the parameter list.
FUNCTION_ATTRIBUTES = frozenset(
    "allockind allocsize alwaysinline builtin cold convergent coro_elide_safe coro_only_destroy_when_complete "
    "disable_sanitizer_instrumentation fn_ret_thunk_extern hot hybrid_patchable inlinehint jumptable memory minsize "
    "mustprogress naked nobuiltin nocallback nocf_check nocreateundeforpoison nodivergencesource noduplicate nofree "
    "noimplicitfloat noinline nomerge nonlazybind noprofile norecurse noredzone noreturn nosanitize_bounds "
    "nosanitize_coverage nosync nounwind null_pointer_is_valid optdebug optforfuzzing optnone optsize "
    "presplitcoroutine readnone readonly returns_twice safestack sanitize_address sanitize_alloc_token "
    "sanitize_hwaddress sanitize_memory sanitize_memtag sanitize_numerical_stability sanitize_realtime "
    "sanitize_realtime_blocking sanitize_thread sanitize_type shadowcallstack skipprofile speculatable "
    "speculative_load_hardening ssp sspreq sspstrong strictfp uwtable vscale_range willreturn writeonly "
    "denormal_fpenv flatten noipa".split()
)
