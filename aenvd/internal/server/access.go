package server

import (
	"net/http"

	"aenvd/internal/httperr"
)

const (
	tokenHeader   = "X-Access-Token"
	initKeyHeader = "X-Aenv-Init-Key"
)

var errUnauthorized = httperr.New(http.StatusUnauthorized,
	"unauthorized access, please provide a valid access token or method signing if supported")

// requireToken lets in who has the access token; everybody while there is none.
func (s *Server) requireToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.state.TokenMatches(r.Header.Get(tokenHeader)) {
			httperr.Write(w, errUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostOnly lets in who has the init key: the host. Before there is a key, nobody.
func (s *Server) hostOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.state.InitKeyMatches(r.Header.Get(initKeyHeader)) {
			httperr.Write(w, httperr.New(http.StatusUnauthorized, "this endpoint is for the host: header %s is missing or wrong", initKeyHeader))
			return
		}
		next(w, r)
	}
}

// mayInit: the host, once it has claimed the guest; before that, whoever could use the rest too.
func (s *Server) mayInit(r *http.Request) bool {
	if s.state.HasInitKey() {
		return s.state.InitKeyMatches(r.Header.Get(initKeyHeader))
	}
	return s.state.TokenMatches(r.Header.Get(tokenHeader))
}

// allowOrigins lets web pages of any origin call us: the access token protects, not the origin.
func allowOrigins(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") == "" {
			next.ServeHTTP(w, r)
			return
		}
		header := w.Header()
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "*")
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
		// `*` does not cover Authorization, so what was asked for is echoed.
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			header.Set("Access-Control-Allow-Headers", asked)
		}
		header.Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
	})
}
