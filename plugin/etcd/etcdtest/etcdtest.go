// Package etcdtest runs an etcd of a test's own. Start at Start.
package etcdtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcdcv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Server is an etcd that keeps what it has when it is killed and run again.
type Server struct {
	URL    string
	Client *etcdcv3.Client

	t    *testing.T
	args []string
	cmd  *exec.Cmd
}

// Start starts a server, and ends it with the test. log is where the client's lines go. Without an etcd to run the test
// is skipped.
func Start(t *testing.T, log *zap.Logger) *Server {
	t.Helper()
	s := &Server{t: t, URL: "http://" + loopback.Addr()}
	peer := "http://" + loopback.Addr()
	s.args = []string{
		program(t), "--data-dir", t.TempDir(), "--listen-client-urls", s.URL, "--advertise-client-urls", s.URL,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer, "--log-level", "error",
		"--auth-token-ttl", "1", // seconds
	}
	t.Cleanup(s.Kill)
	var err error
	if s.Client, err = etcdcv3.New(etcdcv3.Config{Endpoints: []string{s.URL}, Logger: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Client.Close() })
	s.Run()
	return s
}

// program is an etcd: one of Debian's, or the test cluster's.
func program(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("etcd"); err == nil {
		return path
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache")
	}
	if found, _ := filepath.Glob(filepath.Join(cache, "k8s-testbed", "*", "etcd")); len(found) > 0 {
		return found[0]
	}
	t.Skip("no etcd to test with: run test/cluster/build.sh, or apt-get install etcd-server")
	return ""
}

// Run starts the server, again after Kill, and waits until it answers.
func (s *Server) Run() {
	s.t.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if s.answers() {
			return
		}
	}
	s.t.Fatal("in vain waited for etcd")
}

func (s *Server) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := s.Client.Get(ctx, "x")
	return err == nil || errors.Is(err, rpctypes.ErrUserEmpty) // it wants to know who asks
}

// Wipe ends the server and takes away what it has: run again, it begins anew, as one that is restored from a backup
// does.
func (s *Server) Wipe() {
	s.t.Helper()
	s.Kill()
	if err := os.RemoveAll(s.args[2]); err != nil { // --data-dir
		s.t.Fatal(err)
	}
}

// Kill ends the server.
func (s *Server) Kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}
