package etcd

import (
	"github.com/coredns/coredns/plugin"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	viewUp = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "watch_up",
		Help: "Whether changes below the path are followed.",
	}, []string{"path"})
	viewKeys = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: plugin.Namespace, Subsystem: pluginName, Name: "keys",
		Help: "The number of keys below the path that are kept in memory.",
	}, []string{"path"})
)
