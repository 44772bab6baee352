package clusterbed_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/kubernetes/client"
	"github.com/coredns/coredns/plugin/kubernetes/store"
	"github.com/coredns/coredns/test/clusterbed"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestDeploy applies the manifests of deploy/ to a real API server, which checks them, and reads the
// cluster with the rights that they give to the server.
func TestDeploy(t *testing.T) {
	bed := clusterbed.Start(t, clusterbed.Options{})
	folder := filepath.Join("..", "..", "deploy")
	for _, f := range listed(t, filepath.Join(folder, "kustomization.yaml")) {
		bed.Apply(filepath.Join(folder, f))
	}
	bed.Apply(filepath.Join(folder, "autoscale", "horizontalpodautoscaler.yaml"))

	account := clientcmdapi.NewConfig()
	account.Clusters["bed"] = &clientcmdapi.Cluster{Server: bed.URL, CertificateAuthority: bed.CAFile}
	account.AuthInfos["coredns"] = &clientcmdapi.AuthInfo{Token: bed.Token("kube-system", "coredns")}
	account.Contexts["bed"] = &clientcmdapi.Context{Cluster: "bed", AuthInfo: "coredns"}
	account.CurrentContext = "bed"
	c, err := client.New(client.Config{Kubeconfig: clientcmd.NewDefaultClientConfig(*account, &clientcmd.ConfigOverrides{})})
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(store.Config{Endpoints: true, Pods: true}, c)
	s.Start()
	defer s.Stop()
	select {
	case <-s.Synced():
	case <-time.After(20 * time.Second):
		t.Fatal("the rights of deploy/rbac.yaml are not enough: no sync")
	}
	svc := s.Service([]byte("kube-system"), []byte("kube-dns"))
	if svc == nil || len(svc.ClusterIPs()) == 0 || svc.ClusterIPs()[0].String() != "10.96.0.10" || len(svc.Ports()) != 3 {
		t.Errorf("kube-dns is %+v", svc)
	}
	secrets := client.Resource{Version: "v1", Name: "secrets"}
	if _, err := c.List(context.Background(), secrets, client.Options{}, nil); !apierrors.IsForbidden(err) {
		t.Errorf("reading %s: %v, want code %d", secrets, err, http.StatusForbidden)
	}
	if out, err := bed.Get("/api/v1/namespaces/kube-system/configmaps/coredns"); err != nil || !strings.Contains(string(out), "kubernetes cluster.local in-addr.arpa ip6.arpa") {
		t.Errorf("no Corefile in the cluster: %s, %v", out, err)
	}
}

// listed returns the resources that a kustomization names.
func listed(t *testing.T, file string) (all []string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok && strings.HasSuffix(name, ".yaml") {
			all = append(all, name)
		}
	}
	if len(all) < 5 {
		t.Fatalf("%s names %v", file, all)
	}
	return all
}
