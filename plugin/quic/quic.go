// Package quic bounds the connections, streams and workers of the server block's listeners of DNS over QUIC. It has no part in
// queries.
//
//	quic { max_streams 256 } ──parse──▶ settings ──▶ Config.MaxQUICStreams
//
// Start at setup.
package quic

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/limit"

	"github.com/coredns/caddy"
)

const pluginName = "quic"

func init() { plugin.Register(pluginName, setup) }

// settings is what a directive says; nil stands for what it does not say.
type settings struct{ streams, workers, connections *int }

var directive = corefile.Define(&corefile.Directive[settings]{
	Name: pluginName,
	Options: corefile.Table[settings]{
		limit.Option("max_streams", "streams of a connection at one time", 1, func(s *settings) **int { return &s.streams }),
		limit.Option("worker_pool_size", "streams that are served at one time", 1, func(s *settings) **int { return &s.workers }),
		limit.Option("max_connections", "open connections, 0 for any number", 0, func(s *settings) **int { return &s.connections }),
	},
})

func setup(c *caddy.Controller) error {
	all, err := directive.ParseEach(c, settings{})
	if err != nil {
		return err
	}
	config := dnsserver.GetConfig(c) // of several directives the first counts
	config.MaxQUICStreams = all[0].streams
	config.MaxQUICWorkerPoolSize = all[0].workers
	config.MaxQUICConnections = all[0].connections
	return nil
}
