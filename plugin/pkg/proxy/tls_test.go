package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/nonblock/acktest"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// authority makes certificates for 127.0.0.1 and dns.example.org.
func authority(t testing.TB) (server *tls.Config, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		DNSNames: []string{"dns.example.org"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, roots
}

func TestDoT(t *testing.T) {
	server, roots := authority(t)
	var resumed, conns atomic.Int64
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, l, func(conn net.Conn) {
		c := conn.(*tls.Conn)
		if c.Handshake() != nil {
			return
		}
		conns.Add(1)
		if c.ConnectionState().DidResume {
			resumed.Add(1)
		}
		echo(conn)
	})
	addr := l.Addr().String()
	for name, tc := range map[string]struct {
		protocol string
		cfg      *tls.Config
		err      string // how it begins
	}{
		"by name":            {transport.TLS, &tls.Config{RootCAs: roots, ServerName: "dns.example.org"}, ""},
		"by address":         {transport.TLS, &tls.Config{RootCAs: roots}, ""},
		"plain made secure":  {transport.DNS, &tls.Config{RootCAs: roots}, ""},
		"another name":       {transport.TLS, &tls.Config{RootCAs: roots, ServerName: "dns.example.net"}, "tls: failed to verify certificate: x509: certificate is valid for"},
		"unknown authority":  {transport.TLS, &tls.Config{}, "tls: failed to verify certificate: x509:"},
		"no settings at all": {transport.TLS, nil, "tls: failed to verify certificate: x509:"},
	} {
		t.Run(name, func(t *testing.T) {
			p := proxyTo(t, addr, tc.protocol)
			if tc.cfg != nil {
				p.SetTLSConfig(tc.cfg)
			}
			_, err := ask(p, "www.example.org.", Options{})
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
				t.Error(err)
			}
			if err := p.GetHealthchecker().Check(p); (err == nil) != (tc.err == "") {
				t.Errorf("health check: %v", err)
			}
		})
	}

	p := proxyTo(t, addr, transport.TLS)
	p.SetTLSConfig(&tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)})
	p.SetMaxAge(20 * time.Millisecond)
	conns.Store(0)
	for range 20 {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond)
	}
	if conns.Load() < 2 || resumed.Load() == 0 {
		t.Errorf("%d connections, %d resumed", conns.Load(), resumed.Load())
	}
}

// The round trip is what it takes once there is a connection.
func TestRoundTripIsWithoutTheHandshake(t *testing.T) {
	server, roots := authority(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const delay = 500 * time.Millisecond
	serveConns(t, l, func(conn net.Conn) {
		time.Sleep(delay)
		echo(tls.Server(conn, server))
	})
	p := proxyTo(t, l.Addr().String(), transport.TLS)
	p.SetTLSConfig(&tls.Config{RootCAs: roots})
	p.Measure()
	if _, err := ask(p, "www.example.org.", Options{}); err != nil {
		t.Fatal(err)
	}
	if d := p.Latency().Smooth(); d <= 0 || d >= delay {
		t.Errorf("measured %v", d)
	}
	sum := func(vec *prometheus.HistogramVec, labels ...string) float64 {
		var m dto.Metric
		if err := vec.WithLabelValues(labels...).(prometheus.Metric).Write(&m); err != nil || m.Histogram.GetSampleCount() != 1 {
			t.Error(&m, err)
		}
		return m.Histogram.GetSampleSum()
	}
	rtt, all := sum(roundTrip, "test", p.Addr()), sum(requestDuration, "test", p.Addr(), "NOERROR")
	if rtt <= 0 || rtt >= delay.Seconds() || all < delay.Seconds() {
		t.Errorf("the round trip took %v of %v seconds", rtt, all)
	}
}

// A server that gathers small writes holds its first reply back until it knows that the session's ticket has come.
func TestServersThatHoldBack(t *testing.T) {
	server, roots := authority(t)
	server.ClientAuth = tls.RequestClientCert // so that it sends the ticket behind the handshake
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveConns(t, l, func(conn net.Conn) {
		conn.(*net.TCPConn).SetNoDelay(false)
		echo(tls.Server(slowReader{conn}, server)) // the query has come before the ticket is sent
	})
	var p *Proxy
	connect := func() {
		p = proxyTo(t, l.Addr().String(), transport.TLS)
		p.SetTLSConfig(&tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(1)})
	}
	acktest.Prompt(t, connect, func() {
		if _, err := ask(p, "www.example.org.", Options{}); err != nil {
			t.Fatal(err)
		}
	})
}

// slowReader takes its time with each Read.
type slowReader struct{ net.Conn }

func (s slowReader) Read(b []byte) (int, error) {
	time.Sleep(3 * time.Millisecond)
	return s.Conn.Read(b)
}
