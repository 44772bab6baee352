package test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// clusterAPI is a Kubernetes API with services that are aliases, by their names.
func clusterAPI(t *testing.T, aliases map[string]string) string {
	t.Helper()
	var services []string
	for name, to := range aliases {
		services = append(services, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop"},"spec":{"type":"ExternalName","externalName":%q}}`, name, to))
	}
	lists := map[string]string{
		"services":       `{"apiVersion":"v1","kind":"ServiceList","metadata":{"resourceVersion":"7"},"items":[` + strings.Join(services, ",") + `]}`,
		"endpointslices": `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSliceList","metadata":{"resourceVersion":"7"},"items":[]}`,
		"namespaces":     `{"apiVersion":"v1","kind":"NamespaceList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"shop"}}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "": // it does not know that
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			fmt.Fprint(w, lists[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A service of type ExternalName may lead to a name of the zone that the cluster does not have. If nobody has it, there
// are no records of the service.
func TestClusterAliasIntoAChild(t *testing.T) {
	dir := aliasWorld(t)
	api := clusterAPI(t, map[string]string{
		"app": "app.dyn.corp.test", "chain": "app.shop.svc.corp.test", "gone": "gone.dyn.corp.test", "text": "text.dyn.corp.test", "lost": "lost.shop.svc.corp.test", "in": "in.other.corp.test",
	})
	for name, where := range map[string]struct{ same, other string }{
		"file elsewhere": {"", "dyn.corp.test:0 {\nbind 127.0.0.1\nfile " + dir + "/db.dyn\n}"},
		"file here":      {"file " + dir + "/db.dyn dyn.corp.test", ""},
		"hosts here":     {"hosts {\n192.0.2.42 app.dyn.corp.test\nttl 100\nfallthrough\n}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			bothLanes(t, func(t *testing.T) {
				_, udp, tcp := start(t, ".:0 {\nbind 127.0.0.1\nlanespy\nkubernetes corp.test {\nendpoint "+api+"\nfallthrough dyn.corp.test\n}\n"+where.same+"\n}\n"+where.other)
				for qname, want := range map[string]string{
					"app.shop.svc.corp.test.":   "NOERROR aa | app.dyn.corp.test. 100 A 192.0.2.42; app.shop.svc.corp.test. 5 CNAME app.dyn.corp.test. | ",
					"chain.shop.svc.corp.test.": "NOERROR aa | app.dyn.corp.test. 100 A 192.0.2.42; app.shop.svc.corp.test. 5 CNAME app.dyn.corp.test.; chain.shop.svc.corp.test. 5 CNAME app.shop.svc.corp.test. | ",
					"gone.shop.svc.corp.test.":  "NOERROR aa |  | corp.test. 5 SOA",
					"text.shop.svc.corp.test.":  "NOERROR aa |  | corp.test. 5 SOA",
					"lost.shop.svc.corp.test.":  "NOERROR aa |  | corp.test. 5 SOA",
					"in.shop.svc.corp.test.":    "NOERROR aa |  | corp.test. 5 SOA",
				} {
					for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
						before := asMessages.Load()
						if got := brief(ask(t, network, addr, question(qname, dns.TypeA))); got != want {
							t.Errorf("%s over %s: %s\nwant %s", qname, network, got, want)
						}
						if n := asMessages.Load() - before; n > 2 {
							t.Errorf("%s over %s: %d questions in the message lane", qname, network, n)
						}
					}
				}
			})
		})
	}
}
