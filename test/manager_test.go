//go:build unix

package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// manager stands in for systemd: it has opened sockets, and hears what the program says of itself.
type manager struct {
	notify   *net.UnixConn
	packets  *os.File
	streams  *os.File
	addr     string
	dir      string
	corefile string
	out      *logtest.Output // of the program
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{dir: loopback.Folder(t), addr: loopback.Addr()}
	name := filepath.Join(m.dir, "notify")
	var err error
	if m.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"}); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { m.notify.Close() })
	p, err := net.ListenPacket("udp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	if m.packets, err = p.(*net.UDPConn).File(); err != nil {
		t.Fatal(err)
	}
	if m.streams, err = l.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	p.Close() // the descriptors above are the sockets now
	l.Close()
	t.Cleanup(func() { m.packets.Close(); m.streams.Close() })
	m.write(t, "")
	return m
}

// write writes the Corefile, with more lines in its block.
func (m *manager) write(t *testing.T, more string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(m.addr)
	m.corefile = fmt.Sprintf(".:%s {\n\tbind %s\n\tcontrol %s/control.sock\n\twhoami\n%s}\n", port, host, m.dir, more)
	if err := os.WriteFile(filepath.Join(m.dir, "Corefile"), []byte(m.corefile), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts the program with the sockets, as systemd does: the process id that they are for is known after the fork only.
func (m *manager) run(t *testing.T) *program {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, os.Args[0])
	cmd.ExtraFiles = []*os.File{m.packets, m.streams}
	cmd.Env = []string{"LISTEN_FDS=2", "NOTIFY_SOCKET=" + filepath.Join(m.dir, "notify")}
	p := runCommand(t, m.dir, cmd)
	m.out = p.out
	return p
}

// hears waits for a message that begins so, and is the next one.
func (m *manager) hears(t *testing.T, want string) string {
	t.Helper()
	b := make([]byte, 4096)
	m.notify.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := m.notify.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), want) {
		t.Fatalf("the manager heard %q, %v; want %q\n%s", b[:n], err, want, m.out)
	}
	return string(b[:n])
}

// silent fails if the program says anything more.
func (m *manager) silent(t *testing.T) {
	t.Helper()
	b := make([]byte, 4096)
	m.notify.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := m.notify.Read(b); err == nil {
		t.Errorf("the manager heard %q, too", b[:n])
	}
}

// answers asks over both networks.
func (m *manager) answers(t *testing.T) {
	t.Helper()
	for _, network := range []string{"udp", "tcp"} {
		c := &dns.Client{Net: network, Timeout: 5 * time.Second}
		if r, _, err := c.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeA), m.addr); err != nil || len(r.Extra) != 2 {
			t.Errorf("over %s: %v, %v", network, r, err)
		}
	}
}

// control is what the control socket says of the server.
func (m *manager) control(t *testing.T) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(m.dir, "control.sock"))
	}}}
	r, err := client.Get("http://localhost/v1/status")
	if err != nil {
		t.Fatalf("the control socket: %v", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("the control socket says %s, %v", r.Status, err)
	}
	return string(text)
}

// Sockets of a service manager are served, and the manager hears of start, reload, upgrade and end, in this order.
func TestServiceManager(t *testing.T) {
	m := newManager(t)
	// A query that comes before the program is there waits in the socket.
	early, err := net.Dial("udp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	query, _ := new(dns.Msg).SetQuestion("early.example.org.", dns.TypeA).Pack()
	early.Write(query)

	p := m.run(t)
	m.hears(t, fmt.Sprintf("READY=1\nMAINPID=%d\n", p.pid))
	early.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := early.Read(make([]byte, 512)); err != nil || n < len(query) {
		t.Errorf("the query that came before the program: %d octets, %v", n, err)
	}
	m.answers(t)
	if out := p.out.String(); strings.Contains(out, "WARNING") {
		t.Errorf("the program warns: %s", out)
	}

	// A signal that comes at the end of the start may be taken twice. The version is told after that.
	p.out.Await(t, "compatible with")
	m.write(t, "\tnsid a\n")
	syscall.Kill(p.pid, syscall.SIGUSR1)
	m.hears(t, "RELOADING=1\nMONOTONIC_USEC=")
	m.hears(t, "READY=1\n")
	m.answers(t)
	m.write(t, "\tnsid a b {\n")
	syscall.Kill(p.pid, syscall.SIGUSR1)
	m.hears(t, "RELOADING=1\n")
	m.hears(t, "READY=1\n") // the old configuration
	m.answers(t)

	m.write(t, "")
	old := p.pid
	next := p.upgrade(t)
	if said := m.hears(t, "READY=1\n"); said != fmt.Sprintf("READY=1\nMAINPID=%d\n", next.pid) || next.pid == old {
		t.Errorf("after the upgrade of %d by %d the manager heard %q", old, next.pid, said)
	}
	m.answers(t)
	if status := m.control(t); !strings.Contains(status, fmt.Sprintf(`"pid":%d`, next.pid)) {
		t.Errorf("the control socket is not that of the successor %d: %s", next.pid, status)
	}
	m.silent(t)
	syscall.Kill(next.pid, syscall.SIGTERM)
	m.hears(t, "STOPPING=1\n")
}

// What comes while the program is not there waits in the manager's sockets for the next one, also if the one before was
// reloaded, or had the sockets from another one.
func TestServiceManagerRestart(t *testing.T) {
	m := newManager(t)
	go io.Copy(io.Discard, m.notify)
	for what, before := range map[string]func(*program) *program{
		"start":   func(p *program) *program { return p },
		"reload":  func(p *program) *program { p.reload(t); return p },
		"upgrade": func(p *program) *program { return p.upgrade(t) },
	} {
		p := m.run(t)
		p.out.Await(t, "compatible with")
		before(p).terminate(t)
		answered := make(chan error, 2)
		for _, network := range []string{"udp", "tcp"} {
			conn, err := dns.Dial(network, m.addr)
			if err != nil {
				t.Fatalf("%s, over %s: %v", what, network, err)
			}
			defer conn.Close()
			if err := conn.WriteMsg(new(dns.Msg).SetQuestion("example.org.", dns.TypeA)); err != nil {
				t.Errorf("%s, over %s: %v", what, network, err)
			}
			go func() {
				conn.SetReadDeadline(time.Now().Add(20 * time.Second))
				_, err := conn.ReadMsg()
				answered <- err
			}()
		}
		next := m.run(t)
		for range 2 {
			if err := <-answered; err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		m.answers(t)
		next.terminate(t)
	}
}

// A socket that no block is for is told of, and nobody waits at it.
func TestServiceManagerUnusedSocket(t *testing.T) {
	m := newManager(t)
	m.addr = loopback.Addr()
	m.write(t, "")
	p := m.run(t)
	m.hears(t, "READY=1\n")
	p.out.Await(t, "[WARNING] No server block listens on udp 127.0.0.1:")
	p.out.Await(t, "[WARNING] No server block listens on tcp 127.0.0.1:")
	m.answers(t)
}
