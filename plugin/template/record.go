package template

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	gotemplate "text/template"
	"text/template/parse"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zonefile"

	"github.com/miekg/dns"
)

// record is one answer, additional or authority text.
type record struct {
	text *gotemplate.Template
	// fixed is the record itself if the text has no more to fill in than, perhaps, .Name as its owner.
	fixed  dns.RR
	owned  bool   // the owner is .Name
	packed []byte // fixed in wire form; nil unless the template is settled
	never  error  // why the text can never be a record; nil if it may be one
}

var functions = gotemplate.FuncMap{
	"parseInt": strconv.ParseUint,
}

func newRecord(text string) (record, error) {
	t, err := gotemplate.New(pluginName).Funcs(functions).Parse(text)
	if err != nil {
		return record{}, fmt.Errorf("could not compile template: %s, %w", text, err)
	}
	r := record{text: t}
	r.fix()
	return r, nil
}

// fix finds texts that need not be rendered, and those that can never be a record, whatever is asked.
func (r *record) fix() {
	if r.text.Tree == nil || r.text.Tree.Root == nil {
		return
	}
	nodes := r.text.Tree.Root.Nodes
	owned := len(nodes) > 0 && nodes[0].String() == "{{.Name}}"
	var text []byte
	if owned {
		text, nodes = []byte("owner.invalid."), nodes[1:]
	}
	for _, n := range nodes {
		t, ok := n.(*parse.TextNode)
		if !ok {
			return
		}
		if owned && len(t.Text) > 0 && t.Text[0] != ' ' && t.Text[0] != '\t' {
			return // part of the owner
		}
		text = append(text, t.Text...)
	}
	rr, err := read(string(text))
	switch {
	case err != nil:
		r.never = err
	case rr != nil: // nothing, or a comment, leaves its section as it is
		r.fixed, r.owned = rr, owned
	}
}

// render makes the record; the result is nil if the text was empty.
func (r *record) render(d *data) (rr dns.RR, rendered bool, err error) {
	if r.fixed != nil {
		rr := dns.Copy(r.fixed)
		if r.owned {
			rr.Header().Name = d.Name
		}
		return rr, true, nil
	}
	var b bytes.Buffer
	if err := r.text.Execute(&b, d); err != nil {
		return nil, false, err
	}
	rr, err = read(b.String())
	return rr, true, err
}

var errNoData = errors.New("no data")

// read reads a record. One without data, as miekg/dns has them for updates, is none: clients take a reply with one for
// broken.
func read(text string) (dns.RR, error) {
	rr, err := zonefile.Line(strings.TrimSpace(text))
	if err == nil && rr != nil && dns.Len(rr) == dns.Len(&dns.ANY{Hdr: *rr.Header()}) && !wire.MayBeEmpty(rr.Header().Rrtype) {
		return nil, errNoData
	}
	return rr, err
}

// questionOnly reports whether all that the text looks at follows from the directive and the question.
func (r *record) questionOnly() bool {
	if r.text.Tree == nil || r.text.Tree.Root == nil {
		return true
	}
	only := true
	walk(r.text.Tree.Root, func(idents []string) {
		if len(idents) == 0 || slices.Contains([]string{"Message", "Question", "Remote", "Var", "Meta"}, idents[0]) {
			only = false
		}
	})
	return only
}

// walk calls see with the fields that nodes look at; none stand for the data as a whole.
func walk(n parse.Node, see func(idents []string)) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, c := range n.Nodes {
				walk(c, see)
			}
		}
	case *parse.ActionNode:
		walk(n.Pipe, see)
	case *parse.PipeNode:
		if n != nil {
			for _, c := range n.Cmds {
				walk(c, see)
			}
		}
	case *parse.CommandNode:
		for _, c := range n.Args {
			walk(c, see)
		}
	case *parse.IfNode:
		walkBranch(&n.BranchNode, see)
	case *parse.RangeNode:
		walkBranch(&n.BranchNode, see)
	case *parse.WithNode:
		walkBranch(&n.BranchNode, see)
	case *parse.FieldNode:
		see(n.Ident)
	case *parse.VariableNode:
		if n.Ident[0] == "$" { // others hold what was seen when they were set
			see(n.Ident[1:])
		}
	case *parse.TextNode, *parse.CommentNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode,
		*parse.IdentifierNode, *parse.BreakNode, *parse.ContinueNode:
	default: // the dot, templates and what is not known: it may be all
		see(nil)
	}
}

func walkBranch(n *parse.BranchNode, see func([]string)) {
	walk(n.Pipe, see)
	walk(n.List, see)
	walk(n.ElseList, see)
}
