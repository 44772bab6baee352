package client

import (
	"fmt"
	"runtime"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says where the API is and how to speak to it. The first way that is
// given counts: Kubeconfig, Endpoint, and else the cluster that the process runs in.
type Config struct {
	// Kubeconfig is a client configuration as made by the function Kubeconfig.
	Kubeconfig clientcmd.ClientConfig
	// Endpoint is the URL of the API; the files are for TLS and may be empty.
	Endpoint                  string
	CertFile, KeyFile, CAFile string

	// UserAgent names this client to the API; see the function UserAgent.
	UserAgent string
	// QPS and Burst limit how many requests, watches included, are begun. 0 means 5 and 10.
	QPS   float32
	Burst int
	// MaxInflight bounds the requests that wait for an answer, 0 not at all. A
	// watch counts until it has begun.
	MaxInflight int
}

// Kubeconfig returns the configuration in a kubeconfig file; an empty context means the file's
// current one. The file is read when the configuration is first used.
func Kubeconfig(path, context string) clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path},
		&clientcmd.ConfigOverrides{CurrentContext: context},
	)
}

// UserAgent returns how the server names itself to the API.
func UserAgent(version, commit string) string {
	return fmt.Sprintf("CoreDNS/%s git_commit:%s (%s/%s/%s)", version, commit, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// contentType is asked for; a server that cannot give it may answer in JSON.
const contentType = "application/vnd.kubernetes.protobuf"

func (c Config) rest() (*rest.Config, error) {
	cfg, err := c.base()
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = c.UserAgent
	cfg.ContentType, cfg.AcceptContentTypes = contentType, contentType+", */*"
	cfg.GroupVersion = &schema.GroupVersion{Version: "v1"}
	cfg.NegotiatedSerializer = statusOnly{}
	cfg.DisableCompression = true // the API is near, time is what counts
	cfg.QPS, cfg.Burst = c.QPS, c.Burst
	if c.MaxInflight > 0 {
		cfg.Wrap(inflight(c.MaxInflight))
	}
	return cfg, nil
}

func (c Config) base() (*rest.Config, error) {
	switch {
	case c.Kubeconfig != nil:
		return c.Kubeconfig.ClientConfig()
	case c.Endpoint != "":
		return &rest.Config{
			Host:            c.Endpoint,
			TLSClientConfig: rest.TLSClientConfig{CertFile: c.CertFile, KeyFile: c.KeyFile, CAFile: c.CAFile},
		}, nil
	}
	return rest.InClusterConfig()
}
