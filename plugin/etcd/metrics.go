package etcd

import (
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/held"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	viewUp = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "watch_up",
		Help: "Whether changes below the path are followed.",
	}, []string{"path"}))
	viewKeys = held.Of(promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "keys",
		Help: "The number of keys below the path that are kept in memory.",
	}, []string{"path"}))
)
