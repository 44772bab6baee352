package expression_test

import (
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/expression"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/expr-lang/expr"
	"github.com/miekg/dns"
)

func TestDefaultEnv(t *testing.T) {
	m := new(dns.Msg).SetQuestion("WWW.example.org.", dns.TypeHTTPS)
	m.Id, m.Opcode = 7, dns.OpcodeNotify
	m.SetEdns0(1400, true)
	ctx := metadata.ContextWithMetadata(t.Context())
	metadata.SetValueFunc(ctx, "a/b", func() string { return "value" })
	state := &request.Request{W: &test.ResponseWriter{TCP: true}, Req: m}

	for code, want := range map[string]any{
		"incidr('192.0.2.7', '192.0.2.0/24')":         true,
		"incidr('192.0.3.7', '192.0.2.0/24')":         false,
		"incidr('::ffff:192.0.2.7', '192.0.2.0/24')":  true,
		"incidr('192.0.2.7', '::ffff:192.0.2.0/120')": true,
		"incidr('192.0.3.7', '::ffff:192.0.2.0/120')": false,
		"incidr('192.0.2.7', '::ffff:192.0.2.0/95')":  false,
		"incidr('fe80::1%eth0', 'fe80::/10')":         true,
		"incidr(client_ip(), '10.240.0.0/16')":        true,
		"metadata('a/b')":                             "value",
		"metadata('a/c')":                             "",
		"type()":                                      "HTTPS",
		"name()":                                      "www.example.org.",
		"class()":                                     "IN",
		"proto()":                                     "tcp",
		"size()":                                      44,
		"bufsize()":                                   65535,
		"do()":                                        true,
		"id()":                                        7,
		"opcode()":                                    4,
		"client_ip()":                                 "10.240.0.1",
		"port()":                                      "40212",
		"server_ip()":                                 "127.0.0.1",
		"server_port()":                               "53",
	} {
		env := expression.DefaultEnv(ctx, state)
		p, err := expr.Compile(code, expr.Env(env), expr.DisableBuiltin("type"))
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		got, err := expr.Run(p, env)
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", code, got, err, want)
		}
	}
	for _, code := range []string{"incidr('here', '192.0.2.0/24')", "incidr('192.0.2.1', 'there')"} {
		p, err := expr.Compile(code, expr.Env(expression.DefaultEnv(t.Context(), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := expr.Run(p, expression.DefaultEnv(ctx, state)); err == nil {
			t.Errorf("%s: got %v and no error", code, got)
		}
	}
}
