//go:build unix

// Command embed is a program around the server as node caches are: it has flags of its own, which it parses itself, writes the
// Corefile, reloads by a signal to itself, and cleans up when the process ends. Its test runs it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin/pkg/log"

	// Only what it needs is linked in.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/template"

	"github.com/coredns/caddy"
)

// node is what the flags of the program say.
type node struct {
	localIP string
	answer  string // the address that all names have
	watched string // a file with the next one
	mark    string // a file that says that the node is up
}

func main() {
	var n node
	flag.StringVar(&n.localIP, "localip", "127.0.0.1", "address to listen on")
	flag.StringVar(&n.answer, "answer", "192.0.2.1", "address that all names have")
	flag.StringVar(&n.watched, "watch", "", "file that says another address, when it is there")
	flag.StringVar(&n.mark, "mark", "", "file that is there while the node is up")
	flag.Parse()
	if err := n.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go n.watch()
	coremain.Run()
	fmt.Println("run has returned")
}

// prepare writes the Corefile and the mark, whose end is that of the process.
func (n *node) prepare() error {
	if f := flag.Lookup("dns.port"); f == nil || f.Value.String() != dnsserver.Port {
		return fmt.Errorf("no flag dns.port: %v", f)
	}
	if flag.Lookup("pidfile") == nil {
		return fmt.Errorf("no flag pidfile")
	}
	if err := n.writeCorefile(); err != nil {
		return err
	}
	if err := os.WriteFile(n.mark, nil, 0o600); err != nil {
		return err
	}
	caddy.OnProcessExit = append(caddy.OnProcessExit, func() {
		os.Remove(n.mark)
		fmt.Println("the mark is removed")
	})
	return nil
}

// writeCorefile writes the file that the flag conf names, and leaves none that is half written.
func (n *node) writeCorefile() error {
	path := flag.Lookup("conf").Value.String()
	text := fmt.Sprintf(".:%s {\n    bind %s\n    errors\n    cache 1\n    template IN A . {\n        answer \"{{ .Name }} 60 IN A %s\"\n    }\n}\n", dnsserver.Port, n.localIP, n.answer)
	next := filepath.Join(filepath.Dir(path), "next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// watch looks for another address to answer with, until the process ends.
func (n *node) watch() {
	for range time.Tick(50 * time.Millisecond) {
		text, err := os.ReadFile(n.watched)
		if err != nil || string(text) == n.answer {
			continue
		}
		n.answer = string(text)
		if err := n.writeCorefile(); err != nil {
			log.Errorf("node: %v", err)
			continue
		}
		log.Infof("node: answers %s from now on", n.answer)
		if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
			log.Errorf("node: %v", err)
		}
	}
}
