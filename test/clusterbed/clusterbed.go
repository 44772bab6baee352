// Package clusterbed runs a real Kubernetes API for tests: etcd and kube-apiserver on
// loopback, from the scripts in test/cluster.
//
//	bed := clusterbed.Start(t, clusterbed.Options{})   // skips the test if they are not built
//	bed.Apply("fixture.yaml", "fixture-status.yaml")
//	… bed.DNSKubeconfig …
//
// A bed ends with its test; its processes are ended by their ids. There is no
// kubelet and no scheduler: pods and endpoint slices are what tests write.
// This package is part of the server's module and has nothing of Kubernetes' server side.
package clusterbed

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say how a bed is started.
type Options struct {
	// Controllers also runs kube-controller-manager, which makes endpoint slices from selectors.
	Controllers bool
	// IPv4Only makes a cluster with one address family instead of two.
	IPv4Only bool
	// Run is a run folder, which outlives the test; the default is a new one.
	Run string
}

// T is what a bed needs of the test that it is for; testing.TB is one.
type T interface {
	Helper()
	Cleanup(func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Bed is a running API.
type Bed struct {
	// URL is the API's address.
	URL string
	// AdminKubeconfig may do everything, DNSKubeconfig what a DNS server needs, and
	// NobodyKubeconfig nothing.
	AdminKubeconfig, DNSKubeconfig, NobodyKubeconfig string
	// CertFile, KeyFile and CAFile are what DNSKubeconfig is allowed, as TLS files.
	CertFile, KeyFile, CAFile string

	tb   T
	opts Options
	run  string
	http *rest.RESTClient // as administrator
}

// notBuilt is start.sh's exit status when its programs are missing.
const notBuilt = 77

// Start starts a bed, or skips the test where its programs have not been built.
func Start(tb T, opts Options) *Bed {
	tb.Helper()
	b := &Bed{tb: tb, opts: opts, run: opts.Run}
	if b.run == "" {
		b.run = tb.TempDir()
	}
	tb.Cleanup(b.Stop)
	b.start()
	client, err := adminClient(b.AdminKubeconfig)
	if err != nil {
		tb.Fatalf("client for the test bed: %v", err)
	}
	b.http = client
	return b
}

// folder returns test/cluster.
func folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "cluster")
}

func (b *Bed) start() {
	b.tb.Helper()
	args := []string{"-d", b.run}
	if b.opts.Controllers {
		args = append(args, "-c")
	}
	if b.opts.IPv4Only {
		args = append(args, "-4")
	}
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join(folder(), "start.sh"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == notBuilt {
		b.tb.Skipf("no Kubernetes API to test with: run test/cluster/build.sh once (some ten minutes)")
	}
	if err != nil {
		b.tb.Fatalf("starting the test bed: %v\n%s", err, stderr.Bytes())
	}
	b.read(string(out))
}

// read takes in the shell assignments that start.sh prints.
func (b *Bed) read(assignments string) {
	for line := range strings.Lines(assignments) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch value = strings.Trim(value, `"`); name {
		case "K8S_TESTBED_URL":
			b.URL = value
		case "KUBECONFIG":
			b.AdminKubeconfig = value
		case "K8S_TESTBED_DNS_KUBECONFIG":
			b.DNSKubeconfig = value
		case "K8S_TESTBED_NOBODY_KUBECONFIG":
			b.NobodyKubeconfig = value
		case "K8S_TESTBED_DNS_TLS":
			if f := strings.Fields(value); len(f) == 3 {
				b.CertFile, b.KeyFile, b.CAFile = f[0], f[1], f[2]
			}
		}
	}
}

// StopAPI ends the API server, as in an outage. Its data stays; see StartAgain.
func (b *Bed) StopAPI() {
	b.tb.Helper()
	b.script("stop.sh", b.run, "-a")
}

// StartAgain starts what does not run any more, at the same address.
func (b *Bed) StartAgain() {
	b.tb.Helper()
	b.start()
}

// Save keeps a copy of all that the API holds, and Restore brings it back, as etcd is restored from a snapshot: versions
// count on from there. Both end the API, and start it again at the same address.
func (b *Bed) Save() { b.tb.Helper(); b.copyData("etcd", "etcd.saved") }

// Restore is the opposite of Save.
func (b *Bed) Restore() { b.tb.Helper(); b.copyData("etcd.saved", "etcd") }

func (b *Bed) copyData(from, to string) {
	b.tb.Helper()
	b.Stop()
	from, to = filepath.Join(b.run, from), filepath.Join(b.run, to)
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		b.tb.Fatalf("copying what the API holds: %v", err)
	}
	b.start()
}

// Stop ends the bed. It is called at the end of the test by itself.
func (b *Bed) Stop() { b.script("stop.sh", b.run) }

func (b *Bed) script(name string, args ...string) {
	if out, err := exec.Command(filepath.Join(folder(), name), args...).CombinedOutput(); err != nil {
		b.tb.Errorf("%s: %v\n%s", name, err, out)
	}
}

// Fixture returns the path of a file in test/cluster.
func Fixture(name string) string { return filepath.Join(folder(), name) }

func adminClient(kubeconfig string) (*rest.RESTClient, error) {
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return nil, err
	}
	cfg.QPS = -1 // no limit
	return newREST(cfg)
}
