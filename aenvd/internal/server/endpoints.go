package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"

	"golang.org/x/sys/unix"

	"aenvd/internal/httperr"
	"aenvd/internal/state"
)

const maxInitBody = 4 << 20

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) envs(w http.ResponseWriter, _ *http.Request) {
	httperr.JSON(w, http.StatusOK, s.state.EnvVars())
}

func (s *Server) init(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Envd-Version", s.options.Version)
	if !s.mayInit(r) {
		httperr.Write(w, errUnauthorized)
		return
	}
	request, err := readInit(http.MaxBytesReader(w, r.Body, maxInitBody))
	if err != nil {
		httperr.Write(w, err)
		return
	}
	if request.DropStreams {
		s.dropStreams(r.Context())
	}
	if err := s.state.Apply(request, s.options.OwnsMachine); err != nil {
		log.Printf("init: %v", err)
		httperr.Write(w, httperr.New(http.StatusInternalServerError, "init: %v", err))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// readInit reads a body that may be empty; unknown fields are for others.
func readInit(body io.Reader) (state.InitRequest, error) {
	var request state.InitRequest
	content, err := io.ReadAll(body)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return request, httperr.New(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	}
	if err != nil || len(content) == 0 {
		return request, err
	}
	if err := json.Unmarshal(content, &request); err != nil {
		return request, httperr.New(http.StatusBadRequest, "the body is not what /init takes: %v", err)
	}
	return request, nil
}

// sync writes all file systems to the disk, so that the disk alone holds everything.
func (s *Server) sync(w http.ResponseWriter, _ *http.Request) {
	unix.Sync()
	w.WriteHeader(http.StatusNoContent)
}

// dropStreams ends every request and connection but those of ctx; clients see a reset.
func (s *Server) dropStreams(ctx context.Context) {
	s.registry.Drop(ctx)
	if s.forwarder != nil {
		s.forwarder.Drop()
	}
}
