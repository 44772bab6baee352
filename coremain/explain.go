package coremain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/coredns/coredns/plugin/pkg/status"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// What explain is told beside the question.
var asked struct {
	client, transport string
	do, once          bool
}

func explainFlags(f *flag.FlagSet) {
	corefileFlags(f)
	f.StringVar(&socket, "s", defaultSocket(), "Socket of the plugin control of a server that runs")
	f.BoolVar(&asked.once, "once", false, "Ask no server: set up the Corefile for this one question, without listening")
	f.StringVar(&asked.client, "c", "", "Address that is said to ask (default \"127.0.0.1\")")
	f.StringVar(&asked.transport, "t", "", "Transport: udp, tcp, tls, https, https3, quic or grpc")
	f.BoolVar(&asked.do, "do", false, "Ask for DNSSEC records")
	f.BoolVar(&asJSON, "json", false, "Print an object")
}

// way is an explanation as it goes over the socket.
type way struct {
	Server string           `json:"server"`
	Zone   string           `json:"zone"`
	View   string           `json:"view,omitempty"`
	Took   time.Duration    `json:"tookNs"`
	Steps  []dnsserver.Step `json:"steps"`
	Rcode  string           `json:"rcode,omitempty"`
	Reply  string           `json:"reply,omitempty"`
}

// explainCommand is coredns explain NAME [TYPE].
func explainCommand(args []string, out io.Writer) (int, error) {
	if len(args) < 1 || len(args) > 2 {
		return 2, errors.New("one name is expected, and perhaps a type: coredns explain NAME [TYPE]")
	}
	q := url.Values{"name": {args[0]}, "client": {asked.client}, "transport": {asked.transport}, "do": {fmt.Sprint(asked.do)}}
	if len(args) == 2 {
		q.Set("type", args[1])
	}
	var text []byte
	var err error
	if _, gone := os.Stat(socket); gone != nil && socket == status.DefaultSocket && !asked.once && conf == "" {
		fmt.Fprintf(os.Stderr, "No server has its socket at %s: the Corefile is set up for this question.\n", socket)
		asked.once = true
	}
	if asked.once || conf != "" {
		text, err = explainOnce(args)
	} else {
		var body io.ReadCloser
		if body, err = ask(context.Background(), http.MethodGet, "/v1/explain", q); err == nil {
			defer body.Close()
			text, err = io.ReadAll(body)
		}
	}
	if err != nil {
		return 1, err
	}
	if asJSON {
		_, err = out.Write(append(bytes.TrimSpace(text), '\n'))
		return 0, err
	}
	w, err := read[way](text)
	if err == nil {
		err = w.print(printable{out})
	}
	return 0, err
}

// print tells people of the way.
func (w *way) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Listener: %s\n", w.Server)
	switch {
	case w.Zone == "":
		b.WriteString("Block:    none for this name\n")
	case w.View != "":
		fmt.Fprintf(&b, "Block:    %s, view %s\n", w.Zone, w.View)
	default:
		fmt.Fprintf(&b, "Block:    %s\n", w.Zone)
	}
	fmt.Fprintf(&b, "Took:     %s\n\n", w.Took.Round(time.Microsecond))
	last := "" // the error that was told last: it goes up the chain unchanged
	for i, s := range w.Steps {
		fmt.Fprintf(&b, "%*s%-*s %10s", 2*s.Depth, "", max(2, 30-2*s.Depth), s.Plugin, s.Own.Round(time.Microsecond))
		if end := i == len(w.Steps)-1 || w.Steps[i+1].Depth <= s.Depth; end {
			fmt.Fprintf(&b, "  %s", s.Rcode)
			if s.Error != "" && s.Error != last {
				fmt.Fprintf(&b, ": %s", s.Error)
				last = s.Error
			}
		}
		b.WriteByte('\n')
		for _, n := range s.Notes {
			fmt.Fprintf(&b, "%*s- %s\n", 2*s.Depth+4, "", n)
		}
	}
	if w.Reply == "" {
		b.WriteString("\nThere is no reply, on purpose.\n")
	} else {
		b.WriteString("\n" + w.Reply)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// explainOnce sets up the configuration for one question.
func explainOnce(args []string) ([]byte, error) {
	q := dnsserver.Question{Name: dns.Fqdn(args[0]), Type: dns.TypeA, Transport: asked.transport, DO: asked.do}
	if _, ok := dns.IsDomainName(args[0]); !ok {
		return nil, fmt.Errorf("%q is no domain name", args[0])
	}
	if len(args) == 2 {
		t, ok := dnsutil.TypeOf(args[1])
		if !ok {
			return nil, fmt.Errorf("unknown type %q", args[1])
		}
		q.Type = t
	}
	if asked.client != "" {
		a, err := netip.ParseAddr(asked.client)
		if err != nil {
			return nil, fmt.Errorf("%q is no address", asked.client)
		}
		q.Client = netip.AddrPortFrom(a, 40000)
	}
	if err := dnsserver.Register(); err != nil {
		return nil, err
	}
	log.SetOutput(os.Stderr)
	input, err := caddy.LoadCaddyfile(serverType)
	if err != nil {
		return nil, err
	}
	servers, end, err := dnsserver.Once(input)
	if err != nil {
		return nil, explained(err, input)
	}
	defer end()
	e, err := dnsserver.Explain(context.Background(), servers, q)
	if err != nil {
		return nil, err
	}
	w := way{Server: e.Server, Zone: e.Zone, View: e.View, Took: e.Took, Steps: e.Steps}
	if e.Reply != nil {
		w.Rcode, w.Reply = dns.RcodeToString[e.Reply.Rcode], e.Reply.String()
	}
	return json.Marshal(w)
}
