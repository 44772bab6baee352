package doh_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"
)

// TestHostileBodies reads each message three times: from a response, and as a query from requests of both methods.
func TestHostileBodies(t *testing.T) {
	wiretest.Compare(t, 15, func(_ *testing.T, r *wiretest.Reply) {
		doh.ResponseToMsg(&http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(r.Message))})
		query := append([]byte(nil), r.Message...)
		query[2] = 0
		for i := 6; i < 12; i += 2 { // as many records as are read
			query[i], query[i+1] = 0, min(query[i+1], 1)
		}
		doh.RequestToMsg(httptest.NewRequest(http.MethodPost, doh.Path, bytes.NewReader(query)))
		doh.RequestToMsg(httptest.NewRequest(http.MethodGet, doh.Path+"?dns="+base64.RawURLEncoding.EncodeToString(query), nil))
	})
}
