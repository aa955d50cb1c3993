"""How every value of a kernel depends on the work item, when one thread is to do the work of several.

A value is uniform (the same for all items of a thread), affine (item j has the first item's value plus j strides) or
varying. The classes are found by a fixed-point iteration over the function; control flow that depends on the item is
accounted for. Nothing is rewritten here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from mutators.rules import kinds, syntax
from mutators.rules.syntax import Unfit, named, text

UNIFORM = "0"
VARYING = None
Stride = str | None
"""The text of a stride, `UNIFORM`, or `VARYING`."""

BARRIER = "__syncthreads"
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
_LOOPS = ("for_statement", "while_statement", "do_statement")


@dataclass(frozen=True)
class Axis:
    """How threads are merged along one axis.

    Attributes:
        name: x, y or z.
        items: the macro that holds how many items a thread does.
        item: name of the variable that counts them.
        contiguous: whether a thread's items are neighbours, or lie a block's threads apart.
    """

    name: str
    items: str
    item: str
    contiguous: bool

    @property
    def stride(self) -> str:
        """What lies between the thread indices of two items."""
        return "1" if self.contiguous else f"blockDim.{self.name}"

    def index(self, item: str) -> str:
        """Return an item's thread index, unsigned as `threadIdx` is."""
        if self.contiguous:
            return f"(threadIdx.{self.name} * {self.items} + {item})"
        return f"(threadIdx.{self.name} + {item} * {self.stride})"


@dataclass(eq=False)
class Variable:
    """A local variable or parameter: one declaration.

    Attributes:
        name: as written.
        kind: its type's text, with `*` for a pointer and `[]` for an array.
        private: whether it is thread-private and declared in the body, so that there may be one per item.
        stride: its class; meaningless before `known`.
        known: whether any value has been seen.
        depth: how many divergent regions enclose its declaration.
        assigned: whether it is ever written after its declaration.
    """

    name: str
    kind: str
    private: bool = True
    stride: Stride = UNIFORM
    known: bool = False
    depth: int = 0
    assigned: bool = False

    def at(self, item: str) -> str:
        """Return the value that an affine variable has for an item; the variable itself holds the first item's.

        The stride is cast, since `blockDim` is unsigned and would make the sum so.
        """
        if self.stride == "1":
            return f"({self.name} + {item})"
        kind = "long long" if self.pointer else re.sub(r"\bconst\b", "", self.kind).strip()
        return f"({self.name} + {item} * ({kind})({self.stride}))"

    @property
    def pointer(self) -> bool:
        """Whether its elements are somebody else's memory."""
        return self.kind.endswith("*")

    def lower(self, stride: Stride) -> bool:
        """Account for one more value; tells whether the class changed."""
        new = stride if not self.known or self.stride == stride else VARYING
        changed = not self.known or new != self.stride
        self.stride, self.known = new, True
        return changed


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
        root = root_of(node)
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
            return self.of(_only(node))
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
        condition = loop_condition(node)
        if condition is not None and self.of(condition) != UNIFORM:
            return True
        return any(self.under_divergence(jump, node) for jump in jumps(node))

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
        written = text(node).replace(" ", "")
        if written == f"threadIdx.{self.axis.name}":
            return self.axis.stride
        inner = self.of(syntax.field(node, "argument"))
        return UNIFORM if inner == UNIFORM else VARYING

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
        if node.type == "field_expression" and text(node).replace(" ", "") == f"blockDim.{self.axis.name}":
            return f"(blockDim.{self.axis.name} * {self.axis.items})"
        return None

    def _constant(self, node: Node) -> bool:
        variable = self.variable(node)
        return variable is None or not variable.assigned

    def _of_call(self, node: Node) -> Stride:
        function = syntax.field(node, "function")
        arguments = named(syntax.field(node, "arguments"))
        if is_pure(function) and all(self.of(argument) == UNIFORM for argument in arguments):
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
            if guard(node) is not None and self.of(condition_of(node)) != UNIFORM:
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
            self._expression(_only(node), depth)
        elif node.type == "if_statement":
            inner = depth + (self.of(condition_of(node)) != UNIFORM)
            for part in branches(node):
                self._sequence(part, inner)
        elif node.type in _LOOPS:
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
        for declarator in declarators(node):
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
        target = target_of(node)
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
            if node.type == "if_statement" and self.of(condition_of(node)) != UNIFORM:
                return True
            node = node.parent
        return False


# --- the shape of statements ----------------------------------------------------------------------------------


def is_pure(function: Node) -> bool:
    """Whether a called function's result depends on its arguments alone."""
    name = syntax.field(function, "name") if function.type == "template_function" else function
    return bool(_PURE.fullmatch(text(name)))


def condition_of(node: Node) -> Node:
    """Return the condition of an `if`, `while` or `do`."""
    condition = syntax.field(node, "condition")
    return _only(condition) if condition.type in ("condition_clause", "parenthesized_expression") else condition


def loop_condition(node: Node) -> Node | None:
    """Return a loop's condition, or None for an endless `for`."""
    if node.type == "for_statement":
        return node.child_by_field_name("condition")
    return condition_of(node)


def block(node: Node) -> list[Node]:
    """Return a statement's statements."""
    return named(node) if node.type == "compound_statement" else [node]


def branches(node: Node) -> tuple[list[Node], list[Node]]:
    """Return the statements of an `if` and of its `else`."""
    other = node.child_by_field_name("alternative")
    return block(syntax.field(node, "consequence")), block(_only(other)) if other is not None else []


def guard(node: Node) -> list[Node] | None:
    """Return what an `if (…) { …; return; }` without an else does before it returns; None for any other statement."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return None
    then, _ = branches(node)
    return then[:-1] if then and then[-1].type == "return_statement" else None


def jumps(loop: Node) -> Iterator[Node]:
    """Yield the `break` and `continue` statements that belong to this loop."""

    def visit(node: Node) -> Iterator[Node]:
        if node.type in ("break_statement", "continue_statement"):
            yield node
        if node.type not in _LOOPS:
            for child in node.children:
                yield from visit(child)

    yield from visit(syntax.field(loop, "body"))


def declarators(declaration: Node) -> list[Node]:
    """Return the declarators of a declaration, with initial values where they have one."""
    return declaration.children_by_field_name("declarator")


def target_of(node: Node) -> Node:
    """Return what an assignment, `++` or `--` writes."""
    return syntax.field(node, "left" if node.type == "assignment_expression" else "argument")


def root_of(node: Node) -> Node | None:
    """Return the identifier that an lvalue is, or is an element, field or target of."""
    while node.type != "identifier":
        inner = node.child_by_field_name("argument")
        if inner is None and node.type == "parenthesized_expression":
            inner = _only(node)
        if inner is None:
            return None
        node = inner
    return node


def _only(node: Node) -> Node:
    children = named(node)
    if len(children) != 1:
        raise Unfit(f"a {node.type.replace('_', ' ')} of {len(children)} parts")
    return children[0]


# --- what is refused, what is declared ------------------------------------------------------------------------


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


# --- variables ------------------------------------------------------------------------------------------------


def resolve(function: syntax.Function) -> dict[int, Variable]:
    """Return node id -> variable for every identifier of a function that names a parameter or a local variable.

    Raises:
        Unfit: a name hides another, or is declared in a way that is not understood.
    """
    found: dict[int, Variable] = {}
    scope: dict[str, Variable | None] = {}
    for parameter in function.parameters:
        declarator = parameter.child_by_field_name("declarator")
        if declarator is not None:
            name = syntax.declared(declarator)
            kind = text(parameter)[: declarator.start_byte - parameter.start_byte].strip()
            mark = "*" if declarator.type == "pointer_declarator" else ""
            scope[text(name)] = found[name.id] = Variable(text(name), f"{kind}{mark}", private=False)
    _resolve(function.body, found, scope)
    return found


def _resolve(node: Node, found: dict[int, Variable], scope: dict[str, Variable | None]) -> None:
    if node.type in ("compound_statement", *_LOOPS):
        scope = dict(scope)
    variable = scope.get(text(node)) if node.type == "identifier" else None
    if variable is not None:
        found[node.id] = variable
    for child in node.children:
        if node.type == "declaration" and child in declarators(node):
            name = syntax.declared(child)
            if text(name) in scope:
                raise Unfit(f"{text(name)} hides another variable")
            scope[text(name)] = None if _is_shared(node) else Variable(text(name), _kind(node, child))
        _resolve(child, found, scope)
    if node.type in ("assignment_expression", "update_expression"):
        root = root_of(target_of(node))
        if root is not None and root.id in found:
            found[root.id].assigned = True


def _is_shared(declaration: Node) -> bool:
    return any(text(child) == "__shared__" for child in declaration.children)


def _kind(declaration: Node, declarator: Node) -> str:
    inner = syntax.field(declarator, "declarator") if declarator.type == "init_declarator" else declarator
    if inner.type not in ("identifier", "pointer_declarator", "array_declarator"):
        raise Unfit(f"a {inner.type.replace('_', ' ')}")
    mark = {"pointer_declarator": "*", "array_declarator": "[]"}.get(inner.type, "")
    return f"{type_of(declaration).strip()}{mark}"


def type_of(declaration: Node) -> str:
    """Return the text before a declaration's first declarator, its spacing included."""
    return text(declaration)[: declarators(declaration)[0].start_byte - declaration.start_byte]
