"""How a kernel is compiled: its own code once, as a part for others to link, and a program only where Python calls it.

numba makes every function that it compiles ready to run: it links in all that is called, optimises the whole and turns
it into machine code. What stands five calls deep is optimised and translated six times, though only the kernel that
Python calls ever runs. Here every kernel is typed and lowered once and kept as it is, a part; an entry links a part
with all below it, optimises and translates that, once. No step of arithmetic is added, left out or moved: results are
the same to the last bit.

All this leans on the inside of numba. Where that has another shape, importing this module fails, and kernels are
compiled in numba's own way: slower, to the same results (`reticent._core._kernel`).
"""

from __future__ import annotations

from copy import copy
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import codegen, compiler, typed_passes
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.environment import Environment, lookup_environment

for _place, _name in (
    (codegen.JITCodeLibrary, "_optimize_final_module"),
    (codegen.JITCodeLibrary, "_finalize_final_module"),
    (codegen.JITCodeLibrary, "_finalize_dynamic_globals"),
    (compiler.Flags, "no_compile"),
    (compiler.CompilerBase, "compile_extra"),
    (typed_passes.NativeLowering, "run_pass"),
):
    if not hasattr(_place, _name):
        raise ImportError(f"this numba has no {_place.__name__}.{_name}")


class _PartLibrary(codegen.JITCodeLibrary):
    """Code for linking into others: not optimised as a whole, and unknown to the engine that runs code."""

    def _optimize_final_module(self) -> None:
        """Leave that to who links it in."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):
    """The last step of a part: code without a way in from Python."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower the function, and make it known to others that call it."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        # Here and not among the options, by which numba tells apart the helpers that it compiles for us.
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        made = state["cr"]
        # Callers know a function by its entry point: this one cannot be entered.
        name = made.fndesc.qualname.split(".")[-1]
        key = _dynfunc.make_function(made.fndesc.lookup_module(), name, "a part", 0, made.env, (state.library,))
        state.targetctx.insert_user_function(key, made.fndesc, [state.library])
        state["cr"] = made._replace(cfunc=key)
        return True


class PartCompiler(compiler.CompilerBase):
    """Compiles what kernels call."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's own steps with the last of them replaced."""
        steps = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        own = [(_PartLowering if step is typed_passes.NativeLowering else step, text) for step, text in steps.passes]
        manager = PassManager("parts of kernels")
        for step, text in own:
            manager.add_pass(step, text)
        manager.finalize()
        return [manager]


def entry_compiler(part: Any) -> type[Any]:
    """Return a compiler that makes a part, given as the dispatcher that compiles it, ready to be called from Python."""

    class EntryCompiler(compiler.CompilerBase):
        def compile_extra(self, function: Any) -> Any:
            """Link the part with all below it, optimise it and turn it into machine code."""
            args = tuple(self.state.args)
            part.compile(args)
            made = part.overloads[args]
            context = made.target_context
            # What the way in refers to, apart from what the part does: both are known by name in every process.
            described = copy(made.fndesc)
            described.env_name += ".entry"
            environment = Environment.from_fndesc(described)
            library = context.codegen().create_library(described.qualname)
            library.enable_object_caching()
            library.add_linking_library(made.library)
            context.create_cpython_wrapper(library, described, environment, made.call_helper, release_gil=False)
            entry = context.get_executable(library, described, environment)
            # What parts refer to, such as messages: numba tells each function that it makes ready to run where that is.
            for variable in library._final_module.global_variables:
                known = lookup_environment(variable.name)
                if known is not None:
                    library.codegen.set_env(variable.name, known)
            return made._replace(
                library=library, fndesc=described, environment=environment, entry_point=entry,
                metadata=self.state.metadata,
            )  # fmt: skip

    return EntryCompiler
