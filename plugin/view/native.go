package view

import (
	"bytes"
	"regexp"
	"unicode/utf8"

	"github.com/coredns/coredns/plugin/pkg/expression"

	"github.com/expr-lang/expr/ast"
)

// Expressions of the usual shapes as Go functions: truth values, texts and numbers that the environment's functions give,
// compared with constants or with each other, and joined. Each function here reports false for a shape that it does not know; the
// whole expression is then left to the virtual machine, whose results these functions must give.
type (
	truth  func(*evaluator) bool
	number func(*evaluator) int
)

// nativeTest is a node that gives a truth value.
func nativeTest(n ast.Node) (truth, bool) {
	switch n := n.(type) {
	case *ast.BoolNode:
		return func(*evaluator) bool { return n.Value }, true
	case *ast.UnaryNode:
		x, ok := nativeTest(n.Node)
		return func(e *evaluator) bool { return !x(e) }, ok && (n.Operator == "not" || n.Operator == "!")
	case *ast.CallNode:
		switch name := callee(n); {
		case name == "do" && len(n.Arguments) == 0:
			return func(e *evaluator) bool { return e.q.DO() }, true
		case name == "incidr" && len(n.Arguments) == 2:
			return inNetwork(n.Arguments[0], n.Arguments[1])
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return joined(n)
		case "in":
			return oneOf(n)
		case "matches", "contains", "startsWith", "endsWith":
			return like(n)
		}
		return compared(n)
	}
	return nil, false
}

// callee is the name of the function that is called, "" if it has none.
func callee(n *ast.CallNode) string {
	if id, ok := n.Callee.(*ast.IdentifierNode); ok {
		return id.Value
	}
	return ""
}

func joined(n *ast.BinaryNode) (truth, bool) {
	l, lok := nativeTest(n.Left)
	r, rok := nativeTest(n.Right)
	if n.Operator == "and" || n.Operator == "&&" {
		return func(e *evaluator) bool { return l(e) && r(e) }, lok && rok
	}
	return func(e *evaluator) bool { return l(e) || r(e) }, lok && rok
}

// inNetwork is incidr with an address that needs no reading, and a network that is read once. What is no address or no
// network is an error when it is evaluated.
func inNetwork(address, network ast.Node) (truth, bool) {
	call, ok := address.(*ast.CallNode)
	if !ok || len(call.Arguments) > 0 {
		return nil, false
	}
	addr, ok := addresses[callee(call)]
	cidr, constant := network.(*ast.StringNode)
	if !ok || !constant {
		return nil, false
	}
	prefix, err := expression.Network(cidr.Value)
	return func(e *evaluator) bool {
		a := addr(e)
		if err != nil || !a.IsValid() {
			e.failed = true
			return false
		}
		return prefix.Contains(a.Unmap().WithZone(""))
	}, true
}

// text is a text: a constant, or what a function appends.
type text struct {
	constant string
	add      func(*evaluator, []byte) []byte // nil: constant
}

func nativeText(n ast.Node) (text, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return text{constant: n.Value}, true
	case *ast.CallNode:
		add, ok := texts[callee(n)]
		return text{add: add}, ok && len(n.Arguments) == 0
	}
	return text{}, false
}

// append appends the text to b.
func (t *text) append(e *evaluator, b []byte) []byte {
	if t.add == nil {
		return append(b, t.constant...)
	}
	return t.add(e, b)
}

func nativeNumber(n ast.Node) (number, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return func(*evaluator) int { return n.Value }, true
	case *ast.CallNode:
		f, ok := numbers[callee(n)]
		return f, ok && len(n.Arguments) == 0
	case *ast.BuiltinNode:
		if n.Name != "len" || len(n.Arguments) != 1 {
			return nil, false
		}
		t, ok := nativeText(n.Arguments[0])
		return func(e *evaluator) int {
			e.a = t.append(e, e.a[:0])
			return utf8.RuneCount(e.a)
		}, ok
	}
	return nil, false
}

// compared is a comparison of two texts, numbers or truth values.
func compared(n *ast.BinaryNode) (truth, bool) {
	if l, ok := nativeNumber(n.Left); ok {
		r, ok := nativeNumber(n.Right)
		holds, known := orders[n.Operator]
		return func(e *evaluator) bool { return holds(l(e) - r(e)) }, ok && known
	}
	if n.Operator != "==" && n.Operator != "!=" {
		return nil, false
	}
	same := n.Operator == "=="
	if l, ok := nativeText(n.Left); ok {
		r, ok := nativeText(n.Right)
		return func(e *evaluator) bool {
			e.a, e.b = l.append(e, e.a[:0]), r.append(e, e.b[:0])
			return bytes.Equal(e.a, e.b) == same
		}, ok
	}
	l, lok := nativeTest(n.Left)
	r, rok := nativeTest(n.Right)
	return func(e *evaluator) bool { return (l(e) == r(e)) == same }, lok && rok
}

// orders are the operators by how the left number differs from the right one.
var orders = map[string]func(difference int) bool{
	"==": func(d int) bool { return d == 0 },
	"!=": func(d int) bool { return d != 0 },
	"<":  func(d int) bool { return d < 0 },
	"<=": func(d int) bool { return d <= 0 },
	">":  func(d int) bool { return d > 0 },
	">=": func(d int) bool { return d >= 0 },
}

// oneOf is a text or a number among constants, of which the compiler has made a set.
func oneOf(n *ast.BinaryNode) (truth, bool) {
	set, ok := n.Right.(*ast.ConstantNode)
	if !ok {
		return nil, false
	}
	switch values := set.Value.(type) {
	case map[string]struct{}:
		l, ok := nativeText(n.Left)
		return func(e *evaluator) bool {
			e.a = l.append(e, e.a[:0])
			_, found := values[string(e.a)]
			return found
		}, ok
	case map[int]struct{}:
		l, ok := nativeNumber(n.Left)
		return func(e *evaluator) bool {
			_, found := values[l(e)]
			return found
		}, ok
	}
	return nil, false
}

// like is a text that has a form, or a part.
func like(n *ast.BinaryNode) (truth, bool) {
	l, ok := nativeText(n.Left)
	if !ok {
		return nil, false
	}
	if n.Operator == "matches" {
		pattern, ok := n.Right.(*ast.StringNode)
		if !ok {
			return nil, false
		}
		re, err := regexp.Compile(pattern.Value)
		return func(e *evaluator) bool {
			e.a = l.append(e, e.a[:0])
			return re.Match(e.a)
		}, err == nil
	}
	r, ok := nativeText(n.Right)
	has := map[string]func(s, part []byte) bool{"contains": bytes.Contains, "startsWith": bytes.HasPrefix, "endsWith": bytes.HasSuffix}[n.Operator]
	return func(e *evaluator) bool {
		e.a, e.b = l.append(e, e.a[:0]), r.append(e, e.b[:0])
		return has(e.a, e.b)
	}, ok
}
