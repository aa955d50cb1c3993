"""How every value of a kernel depends on the work item, when one thread is to do the work of several.

A value is uniform (the same for all items of a thread), affine (item j has the first item's value plus j strides) or
varying. The classes are found by a fixed-point iteration over the function; control flow that depends on the item is
accounted for. Nothing is rewritten here.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from mutators.rules import kinds, shapes, syntax
from mutators.rules.syntax import Unfit, named, text
from mutators.rules.variables import UNIFORM, VARYING, Axis, Stride, Variable, resolve

_FORBIDDEN = re.compile(
    r"\b(?:__syncthreads_\w+|__syncwarp|__shfl\w*|__ballot\w*|__any\w*|__all\w*|__reduce\w*|__match\w*|__activemask"
    r"|warpSize|cooperative_groups|cg|wmma|asm|__asm\w*|volatile|atomicCAS|atomicExch|__threadfence\w*|clock\w*"
    r"|__nanosleep|goto|printf|assert)\b"
)
"""What makes a thread know of its neighbours, of its place in a warp, or of time."""
_ELSEWHERE = re.compile(r"\b(?:threadIdx|blockDim|__sync\w+|__shfl\w*)\b")
_PURE = re.compile(
    r"f?(?:max|min|abs|fabs|sqrt|rsqrt|cbrt|exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|sin|cos|tan|tanh|sinh|cosh|erf"
    r"|erfc|floor|ceil|round|rint|trunc|fma|fdim|mod|hypot|copysign|isnan|isinf)[fl]?"
    r"|__(?:expf|exp10f|logf|log2f|log10f|powf|sinf|cosf|tanf|fdividef|ldg|f\w+_r[nzud]|\w+2\w+(?:_r[nzud])?|mul24"
    r"|popc\w*|clz\w*|ffs\w*|brev\w*)|make_\w+|static_cast|reinterpret_cast|float|double|int|unsigned|bool|size_t"
)
"""Functions whose result depends on their arguments alone."""
_NUMBER = re.compile(r"[\s\d.+\-*/()xXa-fA-FuUlLeE]*")


class Strides:
    """The classes of a function's variables and expressions along one axis.

    Args:
        function: whose body is analysed.
        axis: along which threads are merged.

    Raises:
        Unfit: the function uses something whose meaning for several items is not known here.
    """

    def __init__(self, function: syntax.Function, axis: Axis) -> None:
        self.axis = axis
        self._changed = True
        _refuse(function)
        if not any(self._is_index(node) for node in syntax.walk(function.body)):
            raise Unfit(f"it does not use threadIdx.{axis.name}")
        self.variables = resolve(function)
        self._kinds = kinds.Kinds({node: variable.kind for node, variable in self.variables.items()})
        while self._changed:  # each round can only lower a variable, from affine or uniform to varying
            self._changed = False
            self._sequence(named(function.body), 0)
        for variable in self.variables.values():
            if variable.stride != UNIFORM and not variable.private:
                raise Unfit(f"{variable.name} is written with a value of the item")

    # --- asking -----------------------------------------------------------------------------------------------

    def variable(self, node: Node) -> Variable | None:
        """Return the variable that an identifier names, or None where it is no local one."""
        return self.variables.get(node.id)

    def private_target(self, node: Node) -> Variable | None:
        """Return the variable that an lvalue is, or is a part of; None where it is memory that others see."""
        root = shapes.root_of(node)
        variable = None if root is None else self.variable(root)
        if variable is None or node.type == "identifier":
            return variable
        return variable if variable.private and not variable.pointer else None

    def of(self, node: Node) -> Stride:
        """Return an expression's stride."""
        kind = node.type
        if kind in ("number_literal", "char_literal", "true", "false", "sizeof_expression", "null"):
            return UNIFORM
        if kind == "identifier":
            variable = self.variable(node)
            return UNIFORM if variable is None else variable.stride
        if kind == "parenthesized_expression":
            return self.of(shapes.only(node))
        if kind == "field_expression":
            return self._of_field(node)
        if kind == "cast_expression":
            return self._of_cast(node)
        if kind == "binary_expression":
            return self._of_binary(node)
        if kind == "unary_expression":
            return self._of_unary(node)
        if kind == "call_expression":
            return self._of_call(node)
        return self._of_rest(node)

    def divergent_loop(self, node: Node) -> bool:
        """Whether a loop's items may leave it, or its body, at different times."""
        condition = shapes.loop_condition(node)
        if condition is not None and self.of(condition) != UNIFORM:
            return True
        return any(self.under_divergence(jump, node) for jump in shapes.jumps(node))

    def guard_of_comparison(self, left: Node, right: Node) -> bool | None:
        """Say what must hold for a comparison of affine values to be monotone in the item.

        False: nothing more, they are of one kind. True: the left one, which is signed, must not be below zero, since it
        is compared as unsigned. None: nothing that can be written would do.
        """
        a, b = self._kinds.of(left), self._kinds.of(right)
        if a == b == "signed":
            return False
        affine = [side for side in (left, right) if self.of(side) != UNIFORM]
        if "unsigned" not in (a, b) or None in (a, b) or "pointer" in (a, b):
            return None
        if all(self._kinds.of(side) == "unsigned" and not self._kinds.may_wrap(side) for side in affine):
            return False
        return True if a == "signed" and self.of(right) == UNIFORM else None

    # --- expressions ------------------------------------------------------------------------------------------

    def _of_field(self, node: Node) -> Stride:
        if self._is_index(node):
            return self.axis.stride
        inner = self.of(syntax.field(node, "argument"))
        return UNIFORM if inner == UNIFORM else VARYING

    def _is_index(self, node: Node) -> bool:
        return shapes.is_member(node, "threadIdx", self.axis.name)

    def _of_cast(self, node: Node) -> Stride:
        inner = self.of(syntax.field(node, "value"))
        if inner in (UNIFORM, VARYING):
            return inner
        kind, value = text(syntax.field(node, "type")).strip(), syntax.field(node, "value")
        if not kinds.is_whole(kind) or (kinds.is_wide(kind) and self._kinds.may_wrap(value)):
            return VARYING
        return inner

    def _of_unary(self, node: Node) -> Stride:
        inner = self.of(syntax.field(node, "argument"))
        if inner in (UNIFORM, VARYING):
            return inner
        return f"-({inner})" if text(node).startswith("-") else VARYING

    def _of_binary(self, node: Node) -> Stride:
        left, right = syntax.field(node, "left"), syntax.field(node, "right")
        operator = text(syntax.field(node, "operator"))
        a, b = self.of(left), self.of(right)
        if a == UNIFORM and b == UNIFORM:
            return UNIFORM
        if a is VARYING or b is VARYING or not self._kinds.adds_up(node):
            return VARYING
        if operator == "+":
            return b if a == UNIFORM else a if b == UNIFORM else f"{a} + {b}"
        if operator == "-":
            return UNIFORM if a == b else a if b == UNIFORM else f"-({b})" if a == UNIFORM else f"{a} - ({b})"
        if operator == "*":
            return self._scaled(a, right) if b == UNIFORM else self._scaled(b, left) if a == UNIFORM else VARYING
        return VARYING

    def _scaled(self, stride: str, factor: Node) -> Stride:
        """Return stride times factor, where the factor means the same wherever the product may be used."""
        if not all(self._constant(n) for n in syntax.walk(factor) if n.type == "identifier"):
            return VARYING
        if any(n.type in ("call_expression", "subscript_expression") for n in syntax.walk(factor)):
            return VARYING
        written = self.rendered_uniform(factor)
        return written if stride == "1" else f"({stride}) * {written}"

    def rendered_uniform(self, node: Node) -> str:
        """Return a uniform factor's text, in parentheses where needed, with the block's size as it was."""
        written = syntax.rendered(node, self.block_size)
        return written if re.fullmatch(r"\w+|\(.*\)", written) else f"({written})"

    def block_size(self, node: Node) -> str | None:
        """Return what stands for `blockDim.<axis>` once threads are merged; None for every other node."""
        if shapes.is_member(node, "blockDim", self.axis.name):
            return f"(blockDim.{self.axis.name} * {self.axis.items})"
        return None

    def _constant(self, node: Node) -> bool:
        variable = self.variable(node)
        return variable is None or not variable.assigned

    def _of_call(self, node: Node) -> Stride:
        function = syntax.field(node, "function")
        arguments = named(syntax.field(node, "arguments"))
        if _is_pure(function) and all(self.of(argument) == UNIFORM for argument in arguments):
            return UNIFORM
        for argument in arguments:
            self.of(argument)
            variable = self.variable(argument)
            if variable is not None and variable.kind.endswith("[]"):
                self._lower(variable, VARYING)  # the function may write into it
        return VARYING

    def _of_rest(self, node: Node) -> Stride:
        if node.type == "subscript_expression":
            parts = [syntax.field(node, "argument"), *named(syntax.field(node, "indices"))]
        elif node.type == "conditional_expression":
            parts = named(node)
        elif node.type == "pointer_expression":
            parts = [syntax.field(node, "argument")]
            if text(node).startswith("&") and self.private_target(parts[0]) is not None:
                raise Unfit("the address of a local variable is taken")
        else:
            raise Unfit(f"a {node.type.replace('_', ' ')} inside an expression")
        uniform = [self.of(part) == UNIFORM for part in parts]
        return UNIFORM if all(uniform) else VARYING

    # --- statements -------------------------------------------------------------------------------------------

    def _sequence(self, nodes: list[Node], depth: int) -> None:
        for index, node in enumerate(nodes):
            if shapes.guard(node) is not None and self.of(shapes.condition_of(node)) != UNIFORM:
                self._statement(node, depth)
                self._sequence(nodes[index + 1 :], depth + 1)
                return
            self._statement(node, depth)

    def _statement(self, node: Node, depth: int) -> None:
        if node.type == "compound_statement":
            self._sequence(named(node), depth)
        elif node.type == "declaration":
            self._declaration(node, depth)
        elif node.type == "expression_statement":
            self._expression(shapes.only(node), depth)
        elif node.type == "if_statement":
            inner = depth + (self.of(shapes.condition_of(node)) != UNIFORM)
            for part in shapes.branches(node):
                self._sequence(part, inner)
        elif node.type in shapes.LOOPS:
            self._loop(node, depth)
        elif node.type not in ("break_statement", "continue_statement", "return_statement", "preproc_call"):
            raise Unfit(f"a {node.type.replace('_', ' ')}")

    def _loop(self, node: Node, depth: int) -> None:
        inner = depth + self.divergent_loop(node)
        initial = node.child_by_field_name("initializer")
        update = node.child_by_field_name("update")
        if initial is not None and initial.type == "declaration":
            self._declaration(initial, inner)
        elif initial is not None:
            self._expression(initial, inner)
        self._statement(syntax.field(node, "body"), inner)
        if update is not None:
            self._expression(update, inner)

    def _declaration(self, node: Node, depth: int) -> None:
        for declarator in shapes.declarators(node):
            variable = self.variable(syntax.declared(declarator))
            initial = declarator.child_by_field_name("value")
            if variable is None:
                continue
            variable.depth = depth
            if initial is None:
                continue
            if initial.type == "initializer_list":
                uniform = all(self.of(part) == UNIFORM for part in named(initial))
                self._lower(variable, UNIFORM if uniform else VARYING)
            else:
                self._lower(variable, self._kept(variable, self.of(initial), initial))

    def _expression(self, node: Node, depth: int) -> None:
        """Account for an expression that stands as a statement."""
        if node.type not in ("assignment_expression", "update_expression"):
            self.of(node)
            return
        target = shapes.target_of(node)
        right = node.child_by_field_name("right")
        value = UNIFORM if right is None else self.of(right)
        place = self.of(target)
        variable = self.private_target(target)
        if variable is None:
            return
        if depth > variable.depth:
            value = VARYING
        elif target.type == "identifier":
            value = self._assigned(variable, node, value)
        elif place != UNIFORM or value != UNIFORM:
            value = VARYING
        self._lower(variable, value)

    def _kept(self, variable: Variable, stride: Stride, value: Node) -> Stride:
        """Return the stride if the variable's type keeps it: a whole number that does not wrap, or a pointer."""
        if stride in (UNIFORM, VARYING):
            return stride
        if not (variable.pointer or kinds.is_whole(variable.kind)):
            return VARYING
        widened = kinds.is_wide(variable.kind) and self._kinds.may_wrap(value)
        return VARYING if widened else stride

    def _assigned(self, variable: Variable, node: Node, value: Stride) -> Stride:
        """Return the class that an assignment to a whole variable leaves it with."""
        operator = "++" if node.type == "update_expression" else text(syntax.field(node, "operator"))
        if operator == "=":
            return self._kept(variable, value, syntax.field(node, "right"))
        if value != UNIFORM:
            return VARYING
        steps = operator == "++" or (
            operator in ("+=", "-=") and self._kinds.of(syntax.field(node, "right")) is not None
        )
        return variable.stride if steps or variable.stride == UNIFORM else VARYING

    def _lower(self, variable: Variable, stride: Stride) -> None:
        self._changed |= variable.lower(stride)

    def under_divergence(self, jump: Node, loop: Node) -> bool:
        """Whether not all items may take a jump of a loop."""
        node = jump.parent
        while node is not None and node != loop:
            if node.type == "if_statement" and self.of(shapes.condition_of(node)) != UNIFORM:
                return True
            node = node.parent
        return False


def _is_pure(function: Node) -> bool:
    """Whether a called function's result depends on its arguments alone."""
    name = syntax.field(function, "name") if function.type == "template_function" else function
    return bool(_PURE.fullmatch(text(name)))


def _refuse(function: syntax.Function) -> None:
    if found := _FORBIDDEN.search(text(function.body)):
        raise Unfit(f"it uses {found[0]}")
    for node in syntax.walk(function.body):
        whole = node.parent is None or node.parent.type != "field_expression"
        if node.type == "identifier" and text(node) in ("threadIdx", "blockDim") and whole:
            raise Unfit(f"{text(node)} is used as a whole")
    root = function.definition
    while root.parent is not None:
        root = root.parent
    for node in syntax.walk(root):
        if node.type == "preproc_function_def" and _ELSEWHERE.search(text(node)):
            raise Unfit("a macro hides the thread's index")
        if node.type == "preproc_def":
            value = node.child_by_field_name("value")
            if value is not None and not _NUMBER.fullmatch(text(value)):
                raise Unfit("a macro stands for more than a number")
    for other in syntax.functions(root):
        is_kernel = any(child.type == "__global__" for child in other.children)
        if not is_kernel and _ELSEWHERE.search(text(other)):
            raise Unfit("a device function uses the thread's index")
        if not is_kernel and any(node.type == "reference_declarator" for node in syntax.walk(other)):
            raise Unfit("a device function may write its arguments")
    if any(n.type == "preproc_function_def" for n in syntax.walk(root)):
        raise Unfit("a macro with arguments may hide a variable")
