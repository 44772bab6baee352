package template

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/expression"
	"github.com/coredns/coredns/request"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// compiler compiles the expressions of a stanza in their order: each sees the variables before it.
type compiler struct{ env types.Map }

// environment is what expressions may call: the functions of the view plugin, and the name's groups.
func environment(ctx context.Context, state *request.Request, group func(any) (string, error)) map[string]any {
	env := expression.DefaultEnv(ctx, state)
	env["group"] = group
	return env
}

func newCompiler() compiler {
	c := compiler{types.Map{}}
	for name, f := range environment(context.Background(), nil, new(data).group) {
		c.env[name] = types.TypeOf(f)
	}
	return c
}

func (c compiler) compile(code string) (*vm.Program, error) {
	return expr.Compile(code, expr.Env(c.env), expr.DisableBuiltin("type"))
}

var variableName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// keywords are the words that the language keeps for itself.
var keywords = []string{
	"true", "false", "nil", "let", "if", "else", "in", "not", "and", "or", "matches", "contains", "startsWith", "endsWith",
}

// variable compiles a var line.
func (c compiler) variable(name, code string) (variable, error) {
	if !variableName.MatchString(name) {
		return variable{}, fmt.Errorf("invalid variable name %q: letters, digits and _, no digit first", name)
	}
	_, taken := c.env[name]
	if taken || slices.Contains(keywords, name) || slices.Contains(builtin.Names, name) {
		return variable{}, fmt.Errorf("variable name %q is reserved", name)
	}
	p, err := c.compile(code)
	if err != nil {
		return variable{}, fmt.Errorf("could not compile expression: %s, %w", name, err)
	}
	c.env[name] = types.Any
	if t := p.Node().Type(); t != nil && t.Kind() != reflect.Interface {
		c.env[name] = types.TypeOf(reflect.Zero(t).Interface())
	}
	return variable{name, p}, nil
}

// condition compiles an expr line.
func (c compiler) condition(code string) (*vm.Program, error) {
	p, err := c.compile(code)
	if err != nil {
		return nil, fmt.Errorf("could not compile expression: %w", err)
	}
	return p, nil
}

// holds works out d's variables and reports whether all conditions are true.
func (t *template) holds(ctx context.Context, state *request.Request, d *data) (bool, error) {
	if len(t.vars)+len(t.conditions) == 0 {
		return true, nil
	}
	env := environment(ctx, state, d.group)
	d.Var = make(map[string]any, len(t.vars))
	for _, v := range t.vars {
		value, err := expr.Run(v.program, env)
		if err != nil {
			return false, fmt.Errorf("variable %s: %w", v.name, err)
		}
		d.Var[v.name], env[v.name] = value, value
	}
	for _, p := range t.conditions {
		value, err := expr.Run(p, env)
		if err != nil {
			return false, fmt.Errorf("expression %q: %w", p.Source().String(), err)
		}
		if value != true {
			return false, nil
		}
	}
	return true, nil
}

// group is a group of the match by name or number, "" if there is none.
func (d *data) group(which any) (string, error) {
	switch w := which.(type) {
	case int:
		if w >= 0 && w < len(d.Match) {
			return d.Match[w], nil
		}
		return "", nil
	case string:
		return d.Group[w], nil
	}
	return "", fmt.Errorf("group: a name or a number is needed, not %v", which)
}
