package files

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"aenvd/internal/httperr"
	"aenvd/internal/state"
)

const (
	opRead  = "read"
	opWrite = "write"
)

// Sign computes the signature of a file URL as E2B's SDKs do. An expiration of "" means that it has none.
func Sign(path, operation, user, token, expiration string) string {
	parts := []string{path, operation, user, token}
	if expiration != "" {
		parts = append(parts, expiration)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
	return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// authorize checks the access token in the header or the signature in the URL. The messages are those that the SDKs'
// tests expect.
func authorize(state *state.State, header http.Header, query url.Values, operation string, now time.Time) error {
	token := state.AccessToken()
	if token == "" {
		return nil
	}
	if sent := header.Get("X-Access-Token"); sent != "" {
		if state.TokenMatches(sent) {
			return nil
		}
		return httperr.New(http.StatusUnauthorized, "access token present in header but does not match")
	}
	signature, expiration := query.Get("signature"), query.Get("signature_expiration")
	if signature == "" {
		return httperr.New(http.StatusUnauthorized, "missing signature query parameter")
	}
	want := Sign(query.Get("path"), operation, query.Get("username"), token, expiration)
	if subtle.ConstantTimeCompare([]byte(signature), []byte(want)) != 1 {
		return httperr.New(http.StatusUnauthorized, "invalid signature")
	}
	if expiration == "" {
		return nil
	}
	if seconds, err := strconv.ParseInt(expiration, 10, 64); err != nil || seconds <= now.Unix() {
		return httperr.New(http.StatusUnauthorized, "signature is already expired")
	}
	return nil
}
