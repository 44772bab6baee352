package view

import (
	"context"

	"github.com/coredns/coredns/plugin/pkg/expression"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// condition is a compiled expression.
type condition struct {
	native   truth       // nil: only the virtual machine knows it
	program  *vm.Program // always there
	metadata bool        // it reads labels
	bounds   bounds      // without which it is never true
	noCIDRs  []string    // constants that are no network, of which incidr makes an error for each query
}

// compile compiles an expression. Its errors show where in the source they are.
func compile(source string) (*condition, error) {
	program, err := expr.Compile(source, expr.Env(expression.DefaultEnv(context.Background(), nil)), expr.DisableBuiltin("type"))
	if err != nil {
		return nil, err
	}
	c := &condition{program: program}
	node := program.Node()
	ast.Walk(&node, c)
	c.bounds = boundsOf(node)
	if native, ok := nativeTest(node); ok {
		c.native = native
	}
	return c, nil
}

// Visit implements ast.Visitor: it looks for names by which labels are reached, and for constants that are of no use.
func (c *condition) Visit(node *ast.Node) {
	if call, ok := (*node).(*ast.CallNode); ok && callee(call) == "incidr" && len(call.Arguments) == 2 {
		if text, ok := call.Arguments[1].(*ast.StringNode); ok {
			if _, err := expression.Network(text.Value); err != nil {
				c.noCIDRs = append(c.noCIDRs, text.Value)
			}
		}
	}
	if id, ok := (*node).(*ast.IdentifierNode); ok && (id.Value == "metadata" || id.Value == "$env") {
		c.metadata = true
	}
}

// holds reports whether the expression is true. An error, or a value that is no truth value, is false.
func (c *condition) holds(e *evaluator) bool {
	if c.native != nil {
		e.failed = false
		return c.native(e) && !e.failed
	}
	value, err := e.machine.Run(c.program, e.env)
	return err == nil && value == true
}
