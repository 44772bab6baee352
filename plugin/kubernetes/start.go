package kubernetes

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coredns/coredns/coremain"
	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/object"
	"github.com/coredns/coredns/plugin/kubernetes/store"
)

// InitKubeCache makes APIConn: it reads the files that are needed to reach the API, but sends nothing. onStart begins to
// follow the API and waits until all there is has been read, or for as long as startup_timeout says.
// onShut ends it, as does the end of ctx.
func (k *Kubernetes) InitKubeCache(ctx context.Context) (onStart func() error, onShut func() error, err error) {
	c, err := client.New(k.clientConfig())
	if err != nil {
		return nil, nil, err
	}
	conn := &controller{Store: store.New(k.storeConfig(), c), zones: k.Zones}
	conn.goOn()
	k.APIConn = conn
	onStart = func() error {
		kept := k.storeConfig()
		if kept.PodLabels = k.hasMetadata(); kept.PodLabels {
			conn.KeepPodLabels()
		}
		conn.kin = kin(c.URL(), kept)
		k.shared.localAddrs()
		conn.start()
		context.AfterFunc(ctx, func() { conn.Stop() })
		waitSynced(ctx, conn.Synced(), k.compiled().startupTimeout)
		conn.inherit()
		return nil
	}
	return onStart, conn.Stop, nil
}

func (k *Kubernetes) clientConfig() client.Config {
	c := client.Config{
		Kubeconfig:  k.ClientConfig,
		CertFile:    k.APIClientCert,
		KeyFile:     k.APIClientKey,
		CAFile:      k.APICertAuth,
		UserAgent:   client.UserAgent(coremain.CoreVersion, coremain.GitCommit),
		QPS:         k.qps,
		Burst:       k.burst,
		MaxInflight: k.maxInflight,
	}
	if len(k.APIServerList) > 0 {
		c.Endpoint = k.APIServerList[0]
	}
	return c
}

func (k *Kubernetes) storeConfig() store.Config {
	c := store.Config{
		NamespaceLabels: k.namespaceLabels,
		Labels:          k.labels,
		Endpoints:       !k.noEndpoints,
		Pods:            k.pods == podsVerified,
		Multicluster:    len(k.multicluster) > 0,
		PodNames:        k.podNames,
		Zones:           k.zonal,
		Log:             logger,
		Latency:         programmed,
	}
	c.Namespaces = slices.Sorted(maps.Keys(k.Namespaces))
	return c
}

// programmed counts how long a change took until it could be seen in DNS.
func programmed(headless bool, d time.Duration) {
	kind := object.KindClusterIP
	if headless {
		kind = object.KindHeadlessWithSelector
	}
	object.DNSProgrammingLatency.WithLabelValues(kind).Observe(d.Seconds())
}

// hasMetadata reports whether labels of pods are of use to anybody.
func (k *Kubernetes) hasMetadata() bool {
	return k.shared != nil && k.shared.config != nil && k.shared.config.Handler("metadata") != nil
}

// waitLog is how often it is logged that the start waits.
const waitLog = 500 * time.Millisecond

// waitSynced waits until synced is closed, at most for the given time.
func waitSynced(ctx context.Context, synced <-chan struct{}, atMost time.Duration) {
	timeout := time.NewTimer(atMost)
	defer timeout.Stop()
	remind := time.NewTicker(waitLog)
	defer remind.Stop()
	for {
		select {
		case <-synced:
			return
		case <-remind.C:
			logger.Info("waiting for Kubernetes API before starting server")
		case <-timeout.C:
			logger.Warning("starting server with unsynced Kubernetes API")
			return
		case <-ctx.Done():
			return
		}
	}
}
