package dnstap

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"

	"github.com/coredns/caddy"
)

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says.
type settings struct {
	listen        bool
	socket        string // as it was written
	network, addr string
	full          bool
	writeBuffer   int // MiB
	queue         int // ten thousands
	identity      string
	version       string
	extra         string
	cert, key, ca string
	skipVerify    bool
}

const (
	maxWriteBuffer = 1024
	maxQueue       = 4096
)

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Args: corefile.Args[settings]{Syntax: "[listen] SOCKET [full] [WRITEBUFFER] [QUEUE]", Max: -1, Set: (*settings).arguments},
	Options: corefile.Table[settings]{
		corefile.String("identity", "ID", "who sends the frames; by default the host's name", func(s *settings, v string) { s.identity = v }),
		corefile.String("version", "VERSION", "what sends them; by default the server's name and version", func(s *settings, v string) { s.version = v }),
		corefile.Row("extra", "FORMAT", "text for each frame", 1, -1, func(s *settings, l *corefile.Line) error {
			s.extra = l.Arg(0)
			return nil
		}),
		corefile.Row("tls", "CERT KEY [CA]", "certificate and key of a listener, and who may connect", 0, -1, func(s *settings, l *corefile.Line) error {
			switch {
			case !s.listen:
				return errors.New("tls directive only valid for listeners")
			case len(l.Args) < 2:
				return errors.New("tls requires cert and key file paths")
			}
			s.cert, s.key, s.ca = l.Arg(0), l.Arg(1), l.Arg(2)
			return nil
		}),
		corefile.Flag("skipverify", "take any certificate of the other side", func(s *settings) { s.skipVerify = true }),
	},
})

// arguments reads the directive's own line.
func (s *settings) arguments(l *corefile.Line) error {
	args := l.Args
	if len(args) > 0 && args[0] == "listen" {
		if s.listen, args = true, args[1:]; len(args) == 0 {
			return errors.New("dnstap listen requires an endpoint argument")
		}
	}
	if len(args) == 0 {
		return l.CountErr()
	}
	s.socket = args[0]
	s.full = len(args) > 1 && args[1] == "full"
	s.writeBuffer, s.queue = 1, 1
	var err error
	if len(args) > 2 && !s.listen {
		if s.writeBuffer, err = multiple("MultipleTcpWriteBuf", args[2], maxWriteBuffer, "MiB units"); err != nil {
			return err
		}
	}
	if len(args) > 3 && !s.listen {
		if s.queue, err = multiple("MultipleQueue", args[3], maxQueue, "x10k messages"); err != nil {
			return err
		}
	}
	return s.endpoint()
}

func multiple(name, text string, most int, unit string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("dnstap: invalid %s %q: %w", name, text, err)
	}
	if n < 1 || n > most {
		return 0, fmt.Errorf("dnstap: %s must be between 1 and %d (%s): %d", name, most, unit, n)
	}
	return n, nil
}

// endpoint finds out what the socket is.
func (s *settings) endpoint() error {
	scheme, rest, ok := strings.Cut(s.socket, "://")
	if !ok {
		scheme, rest = "unix", s.socket
	}
	switch scheme {
	case "unix":
		s.network, s.addr = "unix", rest
		return nil
	case "tcp", "tls":
		s.network, s.addr = "tcp", rest
		if _, _, err := net.SplitHostPort(rest); err != nil {
			return fmt.Errorf("endpoint %q: %w (want HOST:PORT)", s.socket, err)
		}
		return nil
	}
	return fmt.Errorf("endpoint %q: unknown scheme %q (unix, tcp or tls)", s.socket, scheme)
}

func (s *settings) secure() bool { return strings.HasPrefix(s.socket, "tls://") }

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	for i := range all {
		all[i].install(c)
	}
	return nil
}

// install puts one into the chain.
func (s *settings) install(c *caddy.Controller) {
	tapper := &Dnstap{
		IncludeRawMessage: s.full, Identity: []byte(s.identity), Version: []byte(s.version), ExtraFormat: s.extra,
		MultipleTcpWriteBuf: s.writeBuffer, MultipleQueue: s.queue,
	}
	if s.identity == "" {
		host, _ := os.Hostname() // none is none
		tapper.Identity = []byte(host)
	}
	if s.version == "" {
		tapper.Version = []byte(caddy.AppName + "-" + caddy.AppVersion)
	}
	start := s.dial
	if s.listen {
		start = s.serve
		dnsserver.Check(c, s.certified)
	}
	c.OnStartup(func() error { return start(c, tapper) })
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
		tapper.Next = next
		return tapper
	})
}

// dial begins to send to a peer. That it is not there is no reason not to start.
func (s *settings) dial(c *caddy.Controller, tapper *Dnstap) error {
	d := &dialer{
		queue: newQueue(s.queue), network: s.network, addr: s.addr, sendBuffer: s.writeBuffer << 20, logger: logger,
	}
	if s.secure() {
		d.tls = &tls.Config{InsecureSkipVerify: s.skipVerify} //nolint:gosec // it is asked for
	}
	d.absent = func(err error) { logger.Errorf("No connection to dnstap endpoint: %s", err) }
	tapper.sink = d
	d.start()
	dnsserver.OnEnding(c, d.end) // many directives may have one silent collector
	c.OnShutdown(func() error { d.stop(); return nil })
	return nil
}

// serve begins to listen for peers.
func (s *settings) serve(c *caddy.Controller, tapper *Dnstap) error {
	var cfg *tls.Config
	if s.secure() {
		var err error
		if cfg, err = s.certificates(); err != nil { // as CoreDNS 1.14.7, the server starts without the listener
			logger.Errorf("Not listening for collectors: %v", err)
			return nil
		}
	}
	h, err := openHub(c.Context(), s.network, s.addr, cfg, s.handshake(), logger)
	if err != nil {
		return plugin.Error(pluginName, fmt.Errorf("listening on %s: %w", s.socket, err))
	}
	tapper.sink = h
	c.OnShutdown(func() error { h.release(); return nil })
	return nil
}

// handshake is what peers of a listener have to show and are shown. Without TLS that is nothing, whatever the options say:
// two sockets cannot have one path, so that one which is alike has to be the same, also in a reload that fails.
func (s *settings) handshake() string {
	if !s.secure() {
		return ""
	}
	return strings.Join([]string{s.cert, s.key, s.ca, strconv.FormatBool(s.skipVerify)}, " ")
}

// certified refuses a listener for TLS without a certificate.
func (s *settings) certified() error {
	if s.secure() && s.cert == "" {
		return plugin.Error(pluginName, fmt.Errorf("%s: TLS listener requires cert and key files", s.socket))
	}
	return nil
}

func (s *settings) certificates() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", s.socket, err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{pair}}
	if s.ca == "" {
		return cfg, nil
	}
	pem, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, fmt.Errorf("authorities of %s: %w", s.socket, err)
	}
	cfg.ClientCAs, cfg.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if s.skipVerify {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if !cfg.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("authorities of %s: no certificate in %s", s.socket, s.ca)
	}
	return cfg, nil
}
