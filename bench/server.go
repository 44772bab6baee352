package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

const (
	startWithin = 120 * time.Second
	stopWithin  = 8 * time.Second
)

// server is one measured process.
type server struct {
	name   string
	port   int
	output string // path of what it prints
	zone   string // path of its zone file, if it has one
	cmd    *exec.Cmd
	ended  chan struct{} // closed once the process is reaped
	ready  time.Duration // from start to the first right answer
}

// program names a server and the binary that is it.
type program struct {
	name, product, path string
}

// start runs p for workload w and waits until it answers. s holds zone, upstream and
// threads; ports and folder are added here.
func start(p program, w workload, s settings, dir string) (*server, error) {
	s.Dir = filepath.Join(dir, p.name)
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	s.Port, s.Spare = loopback.Port(), []int{loopback.Port(), loopback.Port(), loopback.Port()}
	known := products[p.product]
	config := known.config
	if config == "" {
		config = w.corefile
	}
	path, err := writeConfig(config, s)
	if err != nil {
		return nil, err
	}
	srv := &server{name: p.name, port: s.Port, zone: s.Zone, output: filepath.Join(s.Dir, "output"), ended: make(chan struct{})}
	out, err := os.OpenFile(srv.output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	srv.cmd = exec.Command(p.path, append(append([]string(nil), known.args...), path)...)
	srv.cmd.Dir, srv.cmd.Stdout, srv.cmd.Stderr = s.Dir, out, out
	begin := time.Now()
	if err := srv.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start of %s: %w", p.name, err)
	}
	go func() {
		_ = srv.cmd.Wait()
		close(srv.ended)
	}()
	if err := srv.await(w.probe, begin); err != nil {
		return nil, errors.Join(err, srv.stop())
	}
	return srv, nil
}

// await asks for name until the server answers with a record.
func (s *server) await(name string, begin time.Time) error {
	for time.Since(begin) < startWithin && s.running() {
		if ask(s.port, name) == answer {
			s.ready = time.Since(begin)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	text, _ := os.ReadFile(s.output)
	return fmt.Errorf("start of %s: no answer for %s within %v; it said: %s",
		s.name, name, time.Since(begin).Round(time.Millisecond), text[max(0, len(text)-600):])
}

func (s *server) running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// stop ends the process by its pid and waits for it; what it left behind is killed.
func (s *server) stop() error {
	all, err := family(s.cmd.Process.Pid)
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
		return err
	case <-time.After(stopWithin):
	}
	for _, member := range all {
		if p, err := os.FindProcess(member.pid); err == nil {
			_ = p.Kill()
		}
	}
	<-s.ended
	return errors.Join(err, fmt.Errorf("%s did not end within %v and was killed", s.name, stopWithin))
}

// ask sends one query for the address of name and returns how it was answered.
func ask(port int, name string) outcome {
	conn, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return failure
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := conn.Write(appendQuery(nil, name, typeA)); err != nil {
		return failure
	}
	buf := make([]byte, packetLen)
	n, err := conn.Read(buf)
	if err != nil {
		return failure
	}
	if r, ok := readReply(buf[:n]); ok {
		return r.outcome
	}
	return failure
}
