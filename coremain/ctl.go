package coremain

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/status"
)

// socket is the unix socket of the server that ctl and explain ask.
var socket string

func ctlFlags(f *flag.FlagSet) {
	f.StringVar(&socket, "s", defaultSocket(), "Socket of the plugin control")
	f.BoolVar(&asJSON, "json", false, "Print what the server says, which is JSON")
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "Usage: coredns ctl [-s SOCKET] [-json] COMMAND\n\nCommands:\n")
		for _, c := range ctlCommands {
			fmt.Fprintf(f.Output(), "  %-42s %s\n", strings.TrimSpace(c.name+" "+c.usage), c.help)
		}
		fmt.Fprintln(f.Output(), "\nFlags:")
		f.PrintDefaults()
	}
}

// defaultSocket is the socket that the environment names, or the plugin's default.
func defaultSocket() string {
	if s := os.Getenv("COREDNS_SOCKET"); s != "" {
		return s
	}
	return status.DefaultSocket
}

// ctl is one command of coredns ctl.
type ctl struct {
	name, usage, help string
	// request is what is asked of the server for the arguments. The error says how they should be.
	request func(args []string) (method, path string, q url.Values, err error)
	show    func(out io.Writer, reply []byte) error
}

// ctlCommands is all of them, in the order in which help lists them.
var ctlCommands = []ctl{
	{"status", "", "version, process and listeners", get("/v1/status"), showStatus},
	{"cache", "[get NAME|zone ZONE|all [TYPE]]", "how much is cached, or what", cacheRequest, showCache},
	{"cache flush", "NAME|zone ZONE|all [TYPE]", "forget answers", flushRequest, showValue("forgotten: %.0f\n", "flushed")},
	{"zones", "[ZONE]", "zones with serials, ages and next looks", optional("/v1/zones", "name"), showZones},
	{"zone freeze", "ZONE", "refuse updates of a zone", zoneRequest(http.MethodPost, "/v1/zones/freeze"), showText("frozen: updates are refused\n")},
	{"zone thaw", "ZONE", "take updates of a zone again", zoneRequest(http.MethodPost, "/v1/zones/thaw"), showText("thawed: updates are taken\n")},
	{"zone export", "ZONE", "print a zone as a master file", zoneRequest(http.MethodGet, "/v1/zones/export"), showRaw},
	{"transfers", "", "the last zone transfers", get("/v1/transfers"), showTransfers},
	{"upstreams", "", "upstreams with health, latency and errors", get("/v1/upstreams"), showUpstreams},
	{"connections", "", "connections, and what limits did", get("/v1/connections"), showConnections},
	{"limits", "", "limits in force", get("/v1/limits"), showLimits},
	{"top", "[names|nxdomain|clients|types|rcodes [N]]", "what comes most often", optional("/v1/top", "what", "n"), showTop},
	{"top reset", "", "count anew", post("/v1/top/reset"), showText("counting anew\n")},
	{"recurse zone", "NAME", "servers at which a query for a name begins", oneRequest("the name", "/v1/recurse/zone", "name"), showDelegations},
	{"recurse server", "IP", "what is known of a server of zones", oneRequest("the address", "/v1/recurse/server", "address"), showServers},
	{"anchors", "", "keys of trust anchors, and negative trust anchors", get("/v1/anchors"), showAnchors},
	{"nta add", "NAME [DURATION]", "do not validate a name for a while", parameters("/v1/nta/add", 1, "name", "duration"), showValue("not validated until %v\n", "ends")},
	{"nta del", "NAME", "validate it again", parameters("/v1/nta/del", 1, "name"), showText("validated again\n")},
	{"certificates", "", "certificates with their ends", get("/v1/certificates"), showCertificates},
	{"log", "[debug|info]", "the log level, or set it", logRequest, showValue("%v\n", "level")},
	{"tail", "[name=ZONE] [type=TYPE] [rcode=RCODE] [client=NET] [slower=DURATION] [failed=true] [n=N]", "queries as they are answered", tailRequest, nil},
	{"reload", "", "read the Corefile again, and wait for the result", post("/v1/reload"), showValue("reloaded in %.0f ms\n", "ms")},
	{"drain", "", "answer what has come, and end the process", post("/v1/drain"), showValue("process %.0f answers what has come, and ends\n", "pid")},
}

// ctlCommand is coredns ctl.
func ctlCommand(args []string, out io.Writer) (int, error) {
	c, rest := findCtl(args)
	if c == nil {
		return 2, ctlUsage(args)
	}
	method, path, q, err := c.request(rest)
	if err != nil {
		return 2, fmt.Errorf("%w (usage: coredns ctl %s)", err, strings.TrimSpace(c.name+" "+c.usage))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	body, err := ask(ctx, method, path, q)
	if err != nil {
		return 1, err
	}
	defer body.Close()
	if c.show == nil {
		err := follow(printable{out}, body)
		if ctx.Err() != nil {
			err = nil
		}
		return 0, err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return 1, err
	}
	if asJSON {
		_, err = out.Write(text)
		return 0, err
	}
	return 0, c.show(printable{out}, text)
}

// findCtl is the command that args begin with, the longest name first, and its arguments.
func findCtl(args []string) (*ctl, []string) {
	for words := min(2, len(args)); words > 0; words-- {
		name := strings.Join(args[:words], " ")
		for i := range ctlCommands {
			if ctlCommands[i].name == name {
				return &ctlCommands[i], args[words:]
			}
		}
	}
	return nil, nil
}

// ctlUsage is the error for no command, or one that there is not.
func ctlUsage(args []string) error {
	var names, seconds []string
	for _, c := range ctlCommands {
		name, second, _ := strings.Cut(c.name, " ")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(args) > 0 && args[0] == name {
			seconds = append(seconds, second)
		}
	}
	switch {
	case len(args) == 0:
		return fmt.Errorf("a command is missing: one of %s", strings.Join(names, ", "))
	case len(seconds) > 0:
		return fmt.Errorf("%s is to be followed by one of %s", args[0], strings.Join(seconds, ", "))
	}
	return fmt.Errorf("unknown command %q: must be one of %s", args[0], strings.Join(names, ", "))
}

// ask sends a request over the socket and returns the body of the reply. The error is that of the server if it refuses.
func ask(ctx context.Context, method, path string, q url.Values) (io.ReadCloser, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(ctx, method, "http://coredns"+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(r)
	if err != nil {
		if op := new(net.OpError); errors.As(err, &op) {
			return nil, fmt.Errorf("no server at %s: %w (does the Corefile have the directive control, and is this its socket?)", socket, op.Err)
		}
		return nil, err
	}
	if reply.StatusCode == http.StatusOK {
		return reply.Body, nil
	}
	defer reply.Body.Close()
	var refused struct{ Error string }
	if err := json.NewDecoder(reply.Body).Decode(&refused); err != nil || refused.Error == "" {
		return nil, errors.New(reply.Status)
	}
	return nil, errors.New(refused.Error)
}

// follow prints the lines of a tail.
func follow(out io.Writer, body io.Reader) error {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if asJSON {
			fmt.Fprintf(out, "%s\n", lines.Bytes())
			continue
		}
		var l struct {
			Time, Client, Proto, Name, Type, Rcode, Error string
			Size, Dropped                                 int
			Millis                                        float64 `json:"ms"`
		}
		if err := json.NewDecoder(bytes.NewReader(lines.Bytes())).Decode(&l); err != nil {
			return err
		}
		if l.Dropped > 0 {
			fmt.Fprintf(out, "(%d queries were not shown: they came too fast)\n", l.Dropped)
			continue
		}
		if l.Rcode == "" {
			l.Rcode = "no reply"
		}
		fmt.Fprintf(out, "%s %s %s %s %s: %s, %d octets, %.3f ms", clock(l.Time), l.Client, l.Proto, l.Name, l.Type, l.Rcode, l.Size, l.Millis)
		if l.Error != "" {
			fmt.Fprintf(out, " (%s)", l.Error)
		}
		fmt.Fprintln(out)
	}
	return lines.Err()
}

// What commands ask for.

type request = func(args []string) (method, path string, q url.Values, err error)

func tooMany(args []string) error {
	return fmt.Errorf("too many arguments: %s", strings.Join(args, " "))
}

func get(path string) request { return bare(http.MethodGet, path) }

func post(path string) request { return bare(http.MethodPost, path) }

func bare(method, path string) request {
	return func(args []string) (string, string, url.Values, error) {
		if len(args) > 0 {
			return "", "", nil, tooMany(args)
		}
		return method, path, nil, nil
	}
}

// optional is a request with as many of the parameters as there are arguments.
func optional(path string, names ...string) request {
	return func(args []string) (string, string, url.Values, error) {
		if len(args) > len(names) {
			return "", "", nil, tooMany(args)
		}
		q := url.Values{}
		for i, a := range args {
			q.Set(names[i], a)
		}
		return http.MethodGet, path, q, nil
	}
}

// zoneRequest is a request about one zone.
func zoneRequest(method, path string) request { return needing("the zone", method, path, "name") }

// oneRequest is a request for what there is to tell of one thing.
func oneRequest(what, path, parameter string) request {
	return needing(what, http.MethodGet, path, parameter)
}

// needing is a request with one parameter, which must be there.
func needing(what, method, path, parameter string) request {
	return func(args []string) (string, string, url.Values, error) {
		switch len(args) {
		case 0:
			return "", "", nil, errors.New(what + " is missing")
		case 1:
			return method, path, url.Values{parameter: args}, nil
		}
		return "", "", nil, tooMany(args[1:])
	}
}

// parameters is a request that changes something, with least of the parameters or more.
func parameters(path string, least int, names ...string) request {
	return func(args []string) (string, string, url.Values, error) {
		if len(args) < least {
			return "", "", nil, fmt.Errorf("%s is missing", strings.ToUpper(names[len(args)]))
		}
		_, _, q, err := optional(path, names...)(args)
		return http.MethodPost, path, q, err
	}
}

func cacheRequest(args []string) (string, string, url.Values, error) {
	if len(args) == 0 {
		return http.MethodGet, "/v1/cache", nil, nil
	}
	if args[0] != "get" {
		return "", "", nil, fmt.Errorf("unknown command %q of cache: must be one of get, flush", args[0])
	}
	q, err := answers(args[1:])
	return http.MethodGet, "/v1/cache", q, err
}

func flushRequest(args []string) (string, string, url.Values, error) {
	q, err := answers(args)
	return http.MethodPost, "/v1/cache/flush", q, err
}

// answers reads NAME|zone ZONE|all [TYPE].
func answers(args []string) (url.Values, error) {
	q := url.Values{}
	switch {
	case len(args) == 0:
		return nil, errors.New("what is meant is missing")
	case args[0] == "all":
		q.Set("all", "true")
		args = args[1:]
	case args[0] == "zone" && len(args) > 1:
		q.Set("zone", args[1])
		args = args[2:]
	default:
		q.Set("name", args[0])
		args = args[1:]
	}
	if len(args) > 1 {
		return nil, tooMany(args)
	}
	if len(args) == 1 {
		q.Set("type", args[0])
	}
	return q, nil
}

func logRequest(args []string) (string, string, url.Values, error) {
	switch len(args) {
	case 0:
		return http.MethodGet, "/v1/log", nil, nil
	case 1:
		return http.MethodPost, "/v1/log", url.Values{"level": args}, nil
	}
	return "", "", nil, tooMany(args)
}

// tailKeys is what a tail can be told.
var tailKeys = []string{"name", "type", "rcode", "client", "slower", "failed", "n"}

func tailRequest(args []string) (string, string, url.Values, error) {
	q := url.Values{}
	for _, a := range args {
		key, value, ok := strings.Cut(a, "=")
		if !ok || !slices.Contains(tailKeys, key) {
			return "", "", nil, fmt.Errorf("unknown condition %q: must be KEY=VALUE with one of %s", a, strings.Join(tailKeys, ", "))
		}
		q.Set(key, value)
	}
	return http.MethodGet, "/v1/tail", q, nil
}
