package metrics

import (
	"github.com/coredns/coredns/plugin/pkg/dnstest"

	"github.com/miekg/dns"
)

// Recorder is a dnstest.Recorder that also learns which plugin writes.
type Recorder struct {
	*dnstest.Recorder
	// Plugin is the name of the plugin that wrote, "" if none did.
	Plugin string
}

// NewRecorder returns a Recorder for w, whose time starts now.
func NewRecorder(w dns.ResponseWriter) *Recorder { return &Recorder{Recorder: dnstest.NewRecorder(w)} }

// WriteMsg records res, and then writes it.
func (r *Recorder) WriteMsg(res *dns.Msg) error { return r.Recorder.WriteMsg(res) }

// SetPlugin notes that the plugin name writes.
func (r *Recorder) SetPlugin(name string) { r.Plugin = name }

// GetPlugin returns the name of the plugin that wrote.
func (r *Recorder) GetPlugin() string { return r.Plugin }
