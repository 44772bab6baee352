package endpoint

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// over is what GET / says over a unix socket.
func over(path string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}}
	reply, err := client.Get("http://localhost/")
	if err != nil {
		return "nothing"
	}
	defer reply.Body.Close()
	text, _ := io.ReadAll(reply.Body)
	return string(text)
}

func saysOver(text string) map[string]http.Handler {
	return map[string]http.Handler{"/": says(text)}
}

// A socket whose file was taken away, as by who cleans a folder, is there again after a reload.
func TestUnixSocketIsMadeAgain(t *testing.T) {
	path := filepath.Join(loopback.Folder(t), "s")
	first, second := New("first", Spec{Addr: "unix://" + path, Handlers: saysOver("one")}), New("second", Spec{Addr: "unix://" + path, Handlers: saysOver("two")})
	must(t, first.Open())
	must(t, os.Remove(path))
	first.Restarting()
	must(t, second.Open())
	first.Shutdown()
	if got := over(path); got != "two" {
		t.Errorf("after the reload: %s", got)
	}
	second.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("at the end: %v", err)
	}
}

// A unix socket is the user's own, passes over in a reload, and goes with its last lease.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(loopback.Folder(t), "s")
	first, second := New("first", Spec{Addr: "unix://" + path, Handlers: saysOver("one")}), New("second", Spec{Addr: "unix://" + path, Handlers: saysOver("two")})
	if err := first.Open(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", err, info.Mode())
	}
	first.Restarting()
	if err := second.Open(); err != nil {
		t.Fatal(err)
	}
	if got := over(path); got != "one" {
		t.Errorf("before the hand-over: %s", got)
	}
	first.Shutdown()
	if got := over(path); got != "two" {
		t.Errorf("after the hand-over: %s", got)
	}
	second.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("at the end: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// What a process that has ended left is replaced; who lives, and what is no socket, is left alone.
func TestUnixSocketTaken(t *testing.T) {
	folder := loopback.Folder(t)
	stale := filepath.Join(folder, "stale")
	ln, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	taken, file := New(nil, Spec{Addr: "unix://" + stale, Handlers: saysOver("x")}), filepath.Join(folder, "file")
	if err := taken.Open(); err == nil || !strings.Contains(err.Error(), "another process answers at "+stale) {
		t.Errorf("got %v", err)
	}
	ln.Close()
	if err := taken.Open(); err != nil || over(stale) != "x" {
		t.Errorf("got %v", err)
	}
	taken.Close()
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := New(nil, Spec{Addr: "unix://" + file}).Open(); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(file); string(text) != "mine" {
		t.Errorf("it holds %q", text)
	}
	if err := New(nil, Spec{Addr: "unix://" + filepath.Join(folder, "none", "s")}).Open(); err == nil {
		t.Error("a socket in no folder")
	}
}
