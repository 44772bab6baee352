package view

import (
	"net/netip"

	"github.com/coredns/coredns/plugin/pkg/expression"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/expr-lang/expr/ast"
	"github.com/miekg/dns"
)

// bounds is what an expression needs to be true: a client in one of networks, and one of names, lower and in wire form.
// Nil is any. It need not be all that the expression wants.
type bounds struct {
	clients []netip.Prefix
	names   [][]byte
}

// Bounds tells which queries the view takes at most, so that a server with many views asks few of them.
func (v *View) Bounds() (clients []netip.Prefix, names [][]byte) {
	var b bounds
	for _, x := range v.conditions {
		b = b.and(x.bounds)
	}
	return b.clients, b.names
}

// and is the bounds of two expressions that both have to be true. One of them is enough to be right.
func (b bounds) and(c bounds) bounds {
	if b.clients == nil {
		b.clients = c.clients
	}
	if b.names == nil {
		b.names = c.names
	}
	return b
}

// or is the bounds of two expressions of which one has to be true.
func (b bounds) or(c bounds) (both bounds) {
	if b.clients != nil && c.clients != nil {
		both.clients = append(b.clients[:len(b.clients):len(b.clients)], c.clients...)
	}
	if b.names != nil && c.names != nil {
		both.names = append(b.names[:len(b.names):len(b.names)], c.names...)
	}
	return both
}

// boundsOf is the bounds of an expression; of a shape that it does not know, none.
func boundsOf(n ast.Node) bounds {
	switch n := n.(type) {
	case *ast.CallNode:
		if callee(n) == "incidr" && len(n.Arguments) == 2 && isCall(n.Arguments[0], "client_ip") {
			if network, ok := n.Arguments[1].(*ast.StringNode); ok {
				return inNetworks(network.Value)
			}
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			return boundsOf(n.Left).and(boundsOf(n.Right))
		case "or", "||":
			return boundsOf(n.Left).or(boundsOf(n.Right))
		case "==":
			if text, ok := n.Right.(*ast.StringNode); ok {
				return oneOfTexts(n.Left, text.Value)
			}
			if text, ok := n.Left.(*ast.StringNode); ok {
				return oneOfTexts(n.Right, text.Value)
			}
		case "in":
			if set, ok := n.Right.(*ast.ConstantNode); ok {
				if values, ok := set.Value.(map[string]struct{}); ok {
					var texts []string
					for text := range values {
						texts = append(texts, text)
					}
					return oneOfTexts(n.Left, texts...)
				}
			}
		}
	}
	return bounds{}
}

// isCall reports whether a node is a call of a function without arguments.
func isCall(n ast.Node, name string) bool {
	call, ok := n.(*ast.CallNode)
	return ok && callee(call) == name && len(call.Arguments) == 0
}

// inNetworks is the bounds of a client in a network. What is no network is an error when it is evaluated.
func inNetworks(text string) bounds {
	p, err := expression.Network(text)
	if err != nil || p.Addr().Is4In6() {
		return bounds{}
	}
	return bounds{clients: []netip.Prefix{p}}
}

// oneOfTexts is the bounds of a function whose text is one of some. A text that the function never gives is left out.
func oneOfTexts(n ast.Node, texts ...string) (b bounds) {
	switch {
	case isCall(n, "client_ip"):
		b.clients = []netip.Prefix{}
		for _, text := range texts {
			if a, err := netip.ParseAddr(text); err == nil {
				a = a.Unmap().WithZone("")
				b.clients = append(b.clients, netip.PrefixFrom(a, a.BitLen()))
			}
		}
	case isCall(n, "name"):
		b.names = [][]byte{}
		for _, text := range texts {
			if name, err := wire.LowerName(text); err == nil && dns.IsFqdn(text) {
				b.names = append(b.names, name)
			}
		}
	}
	return b
}
