"""Writing a kernel anew so that one thread does the work of several neighbours in lockstep.

This is thread coarsening with unroll-and-jam (Magni, Dubach & O'Boyle, *A large-scale cross-architecture evaluation of
thread-coarsening*, SC 2013): control flow that all items share is written once, and every statement that depends on
the item becomes a short loop over the items, so that loads are reused and accumulators become arrays. Where items may
part ways, a fast path serves items that agree, and a loop over single items the rest.

It keeps the meaning of every kernel whose result does not depend on how its threads interleave between barriers,
which is every kernel without a race: the items of one thread simply run in one particular order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from mutators.rules import shapes, syntax
from mutators.rules.names import Names, wrapped
from mutators.rules.strides import Strides
from mutators.rules.syntax import Unfit, named, text
from mutators.rules.variables import UNIFORM, VARYING, Axis, Variable

_MOST_NESTED = 2
"""Fast paths within fast paths: each doubles the code of what it encloses."""


@dataclass
class _Code:
    """Statements being written: neighbouring statements of single items share one loop over the items."""

    axis: Axis
    lines: list[str]
    items: list[str]

    def whole(self, line: str) -> None:
        """Add what is done once for all items."""
        self.close()
        self.lines.append(line)

    def before(self, line: str) -> None:
        """Add a declaration or comment that may stand ahead of the open loop over items."""
        self.lines.append(line)

    def item(self, statement: str) -> None:
        """Add what each item does on its own."""
        self.items.append(statement)

    def close(self) -> None:
        if self.items:
            self.lines.append(_over_items(self.axis, "\n".join(self.items)))
            self.items = []

    def text(self) -> str:
        self.close()
        return "\n".join(self.lines)


def _over_items(axis: Axis, body: str) -> str:
    return f"for (int {axis.item} = 0; {axis.item} < {axis.items}; ++{axis.item}) {{\n{body}\n}}"


class Lockstep:
    """Writes one function's body for several items.

    Args:
        function: the kernel.
        axis: how its threads are merged.
        constants: names of macros that are numbers (tunables): a loop that only counts up to one is done item by item,
            so that it stays innermost.
        taken: words that new names must avoid.

    Raises:
        Unfit: the kernel cannot be written so.
    """

    def __init__(self, function: syntax.Function, axis: Axis, constants: set[str], taken: set[str]) -> None:
        self._function = function
        self._axis = axis
        self._constants = constants
        self._taken = set(taken)
        self._strides = Strides(function, axis)
        self._names = Names(self._strides)
        self._nested = 0

    def body(self) -> str:
        """Return the new body, braces included."""
        return "{\n" + self._jam(self._function.body.named_children, tail=True) + "\n}"

    # --- all items together -----------------------------------------------------------------------------------

    def _jam(self, nodes: list[Node], tail: bool = False) -> str:
        code = _Code(self._axis, [], [])
        pragma = ""
        for index, node in enumerate(nodes):
            if node.type == "comment":
                code.before(text(node))
                continue
            before = shapes.guard(node)
            if before is not None and self._diverges(shapes.condition_of(node)):
                if not tail:
                    raise Unfit("an item may return from within a loop")
                self._split(code, shapes.condition_of(node), before, nodes[index + 1 :], tail, likely=False)
                break
            self._jam_statement(code, node, pragma, tail and index == len(nodes) - 1)
            pragma = f"{text(node).strip()}\n" if node.type == "preproc_call" else ""
        return code.text()

    def _jam_statement(self, code: _Code, node: Node, pragma: str, tail: bool) -> None:
        if node.type == "declaration":
            self._jam_declaration(code, node)
        elif node.type == "expression_statement":
            self._jam_expression(code, node)
        elif node.type == "compound_statement":
            code.whole("{\n" + self._jam(node.named_children) + "\n}")
        elif node.type == "if_statement":
            self._jam_if(code, node, tail)
        elif node.type == "for_statement":
            self._jam_for(code, node, pragma)
        elif node.type in ("while_statement", "do_statement"):
            self._jam_while(code, node)
        elif node.type != "preproc_call":
            code.whole(text(node))

    def _jam_declaration(self, code: _Code, node: Node) -> None:
        for declarator in shapes.declarators(node):
            variable = self._strides.variable(syntax.declared(declarator))
            if variable is None or variable.stride is not VARYING:
                code.whole(f"{shapes.type_of(node)}{syntax.rendered(declarator, self._names.first)};")
            else:
                self._declare_items(code, node, declarator, variable.name)

    def _declare_items(self, code: _Code, node: Node, declarator: Node, name: str) -> None:
        """Turn a variable into one per item; its initial value becomes an assignment."""
        value = declarator.child_by_field_name("value")
        inner = syntax.field(declarator, "declarator") if declarator.type == "init_declarator" else declarator
        kind = shapes.type_of(node).strip()
        if inner.type != "pointer_declarator":
            kind = re.sub(r"\bconst\b\s*", "", kind).strip()
        if re.search(r"\b(?:auto|static|constexpr)\b", kind):
            raise Unfit(f"{name} is declared {kind}")
        shape = re.sub(rf"\b{name}\b", f"{name}[{self._axis.items}]", text(inner), count=1)
        shape = re.sub(r"\*\s*const\b", "*", shape)
        if value is None:
            code.before(f"{kind} {shape};")
        elif value.type == "initializer_list":
            if inner.type != "array_declarator" or not all(
                re.fullmatch(r"0(?:\.0*)?f?", text(v)) for v in named(value)
            ):
                raise Unfit(f"{name} has a list of initial values")
            code.before(f"{kind} {shape} = {{}};")
        elif value.type == "argument_list" or inner.type == "array_declarator":
            raise Unfit(f"{name} has an initial value in parentheses")
        else:
            code.before(f"{kind} {shape};")
            code.item(f"{name}[{self._axis.item}] = {self._names.rendered(value, set())};")

    def _jam_expression(self, code: _Code, node: Node) -> None:
        expression = named(node)[0]
        if shapes.is_barrier(expression):
            code.whole(text(node))
        elif self._is_shared_update(expression):
            code.whole(syntax.rendered(node, self._names.first))
        else:
            code.item(self._names.rendered(node, set()))

    def _is_shared_update(self, node: Node) -> bool:
        """Whether an expression writes a variable (or element of one) that all items share."""
        if node.type not in ("assignment_expression", "update_expression"):
            return False
        variable = self._strides.private_target(shapes.target_of(node))
        return variable is not None and variable.stride is not VARYING

    def _jam_if(self, code: _Code, node: Node, tail: bool) -> None:
        condition = shapes.condition_of(node)
        then, other = shapes.branches(node)
        if self._diverges(condition):
            self._split(code, condition, then, other, tail, likely=not _likely_false(condition))
            return
        written = f"if ({syntax.rendered(condition, self._names.first)}) {{\n{self._jam(then)}\n}}"
        code.whole(written + (f" else {{\n{self._jam(other)}\n}}" if other else ""))

    def _split(
        self, code: _Code, condition: Node, then: list[Node], other: list[Node], tail: bool, likely: bool
    ) -> None:
        """Write a condition on which items may disagree: together where they agree on the likely side, else alone."""
        together = then if likely else other
        alone = self._alone_if(condition, then, other, set(), tail)
        if not together or self._nested >= _MOST_NESTED:
            code.item(alone)
            return
        self._nested += 1
        body = self._jam(together, tail)
        self._nested -= 1
        agreed = self._agreed(code, condition, likely)
        code.whole(f"if {wrapped(agreed)} {{\n{body}\n}} else {{\n{_over_items(self._axis, alone)}\n}}")

    def _agreed(self, code: _Code, condition: Node, wanted: bool) -> str:
        """Return an expression that holds only where all items agree on `wanted`."""
        by_ends = self._names.by_ends(condition, wanted)
        if by_ends is not None:
            return by_ends
        count = syntax.free_name("agree", self._taken)
        self._taken.add(count)
        one = wrapped(self._names.rendered(condition, set()))
        code.whole(f"int {count} = 0;")
        code.whole(_over_items(self._axis, f"{count} += {one} ? {int(wanted)} : {int(not wanted)};"))
        return f"{count} == {self._axis.items}"

    # --- loops ------------------------------------------------------------------------------------------------

    def _jam_for(self, code: _Code, node: Node, pragma: str) -> None:
        if self._strides.divergent_loop(node):
            self._jam_divergent_for(code, node, pragma)
        elif self._stays_innermost(node):
            code.item(pragma + self._alone(node, set()))
        else:
            self._refuse_varying_header(node)
            head = self._head(node)
            code.whole(f"{pragma}for ({head}) {{\n{self._jam(_body(node))}\n}}")

    def _head(self, node: Node, initial: bool = True, condition: str = "") -> str:
        parts = [node.child_by_field_name(name) for name in ("initializer", "condition", "update")]
        first, second, third = ("" if part is None else syntax.rendered(part, self._names.first) for part in parts)
        first = first.rstrip("; ") if initial else ""
        return f"{first}; {condition or second}; {third}"

    def _refuse_varying_header(self, node: Node) -> None:
        for name in ("initializer", "update"):
            part = node.child_by_field_name(name)
            for found in syntax.walk(part) if part is not None else ():
                variable = self._strides.variable(found)
                if variable is not None and variable.stride is VARYING:
                    raise Unfit("a loop's variable depends on the item, its end does not")

    def _stays_innermost(self, node: Node) -> bool:
        """Whether a loop counts to a constant, holds no loop that does not, and writes nothing that items share."""
        for loop in syntax.walk(node):
            if loop.type in ("while_statement", "do_statement", "return_statement") or shapes.is_barrier(loop):
                return False
            if loop.type == "for_statement" and not self._counts_to_constant(loop):
                return False
        inside = self._names.declared(node)
        updates = (n for n in syntax.walk(node) if n.type in ("assignment_expression", "update_expression"))
        return all(
            self._strides.private_target(shapes.target_of(update)) in inside
            for update in updates
            if self._is_shared_update(update)
        )

    def _counts_to_constant(self, loop: Node) -> bool:
        condition = loop.child_by_field_name("condition")
        if condition is None or condition.type != "binary_expression":
            return False
        end = syntax.field(condition, "right")
        return end.type == "number_literal" or text(end) in self._constants

    def _jam_divergent_for(self, code: _Code, node: Node, pragma: str) -> None:
        """Run the loop for all items while all go on, then let each finish alone; else each alone from the start."""
        counter = self._counter(node)
        condition = node.child_by_field_name("condition")
        fit = condition is not None and self._names.by_ends(condition, True) is not None
        breaks = any(jump.type == "break_statement" for jump in shapes.jumps(node))
        split = any(self._strides.under_divergence(jump, node) for jump in shapes.jumps(node))
        if counter is None or condition is None or not fit or breaks or split or self._nested >= _MOST_NESTED:
            code.item(pragma + self._alone(node, set()))
            return
        kind, variable = counter
        self._nested += 1
        body = self._jam(_body(node))
        self._nested -= 1
        initial = syntax.rendered(syntax.field(node, "initializer"), self._names.first).rstrip("; ")
        together = f"{pragma}for ({self._head(node, False, self._agreed(code, condition, True))}) {{\n{body}\n}}"
        alone = _over_items(self._axis, self._rest_of_loop(node, kind, variable))
        code.whole(f"{{\n{initial};\n{together}\n{alone}\n}}")

    def _rest_of_loop(self, node: Node, kind: str, counter: Variable) -> str:
        """Return the loop as a single item goes on with it, counting in a variable of its own."""
        own = syntax.free_name(f"{counter.name}_{self._axis.item}", self._taken)
        self._taken.add(own)
        base = self._names.replacement(self._names.declared(node))
        initial = node.child_by_field_name("initializer")

        def replacement(current: Node) -> str | None:
            if current == initial:
                return f"{kind} {own} = {self._names.written(counter)};"
            if self._strides.variable(current) is counter:
                return own
            return "" if current.type == "comment" else base(current)

        self._refuse_parting(node)
        return syntax.rendered(node, replacement)

    def _counter(self, node: Node) -> tuple[str, Variable] | None:
        """Return type and variable of a loop that declares exactly one, where it is affine."""
        initial = node.child_by_field_name("initializer")
        if initial is None or initial.type != "declaration" or len(shapes.declarators(initial)) != 1:
            return None
        declarator = shapes.declarators(initial)[0]
        if declarator.type != "init_declarator" or syntax.field(declarator, "declarator").type != "identifier":
            return None
        variable, kind = self._strides.variable(syntax.declared(declarator)), shapes.type_of(initial).strip()
        return None if variable is None or variable.stride is VARYING or "const" in kind else (kind, variable)

    def _jam_while(self, code: _Code, node: Node) -> None:
        if self._strides.divergent_loop(node):
            code.item(self._alone(node, set()))
            return
        condition = wrapped(syntax.rendered(shapes.condition_of(node), self._names.first))
        body = f"{{\n{self._jam(_body(node))}\n}}"
        code.whole(f"while {condition} {body}" if node.type == "while_statement" else f"do {body} while {condition};")

    # --- one item alone ---------------------------------------------------------------------------------------

    def _alone(self, node: Node, inner: set[Variable]) -> str:
        """Return a statement as a single item does it."""
        self._refuse_parting(node)
        base = self._names.replacement(inner | self._names.declared(node))
        return syntax.rendered(node, lambda found: "" if found.type == "comment" else base(found))

    def _refuse_parting(self, node: Node) -> None:
        for found in syntax.walk(node):
            if shapes.is_barrier(found):
                raise Unfit("a barrier stands where items may part ways")
            if found.type == "return_statement":
                raise Unfit("an item may return where the others go on")

    def _alone_if(self, condition: Node, then: list[Node], other: list[Node], inner: set[Variable], tail: bool) -> str:
        test = wrapped(self._names.rendered(condition, inner))
        first, second = self._alone_all(then, inner, tail), self._alone_all(other, inner, tail)
        if not first:
            return f"if (!{test}) {{\n{second}\n}}"
        return f"if {test} {{\n{first}\n}}" + (f" else {{\n{second}\n}}" if second else "")

    def _alone_all(self, nodes: list[Node], inner: set[Variable], tail: bool) -> str:
        """Return statements as a single item does them; at the end of the kernel a return becomes an else."""
        inner = inner.union(*(self._names.declared(node) for node in nodes if node.type == "declaration"))
        lines = []
        for index, node in enumerate(nodes):
            before = shapes.guard(node)
            if tail and before is not None:
                rest = nodes[index + 1 :]
                lines.append(self._alone_if(shapes.condition_of(node), before, rest, inner, tail))
                break
            if node.type != "comment":
                lines.append(self._alone(node, inner))
        return "\n".join(lines)

    def _diverges(self, condition: Node) -> bool:
        return self._strides.of(condition) != UNIFORM


def _likely_false(condition: Node) -> bool:
    """Guess that a disjunction or an equation (borders, `t == 0`) is false for most items; its inverse is true."""
    while condition.type == "parenthesized_expression":
        condition = named(condition)[0]
    if condition.type != "binary_expression":
        return False
    return text(syntax.field(condition, "operator")) in ("||", "==")


def _body(loop: Node) -> list[Node]:
    body = syntax.field(loop, "body")
    return list(body.named_children) if body.type == "compound_statement" else [body]
