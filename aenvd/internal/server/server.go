// Package server is the HTTP side of aenvd: one port with Connect services, plain endpoints, and who may use them.
package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"

	"aenvd/internal/files"
	"aenvd/internal/forward"
	"aenvd/internal/gen/filesystem/filesystempbconnect"
	"aenvd/internal/gen/process/processpbconnect"
	"aenvd/internal/metrics"
	"aenvd/internal/proc"
	"aenvd/internal/reaper"
	"aenvd/internal/state"
	"aenvd/internal/streams"
)

const (
	// Messages are small; input to a process may be pasted in one piece.
	maxMessage = 64 << 20
	// Compressing less costs more than it saves.
	minCompress = 16 << 10
	// Per stream and connection; the default of 64 KiB … 1 MiB limits uploads over HTTP/2.
	uploadBuffer = 4 << 20
	// Per HTTP/2 connection: a proxy may carry all clients over one, and each watched process is a stream.
	maxStreams        = 4096
	readHeaderTimeout = 30 * time.Second
)

// Options are what differs between the guest's PID 1 and a plain process.
type Options struct {
	Version string
	// OwnsMachine: /init may change the clock, the hostname and the files of the system; orphans are ours.
	OwnsMachine bool
	// Address of the network card, when there is one: ports that only localhost has are forwarded from it.
	Address netip.Addr
}

// Server serves on any number of listeners.
type Server struct {
	options  Options
	state    *state.State
	registry *streams.Registry
	// Nil without an address.
	forwarder *forward.Forwarder
	http      *http.Server
	stop      context.CancelFunc
}

// New wires everything up.
func New(options Options) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{options: options, state: state.New(), registry: streams.New(), stop: stop}
	if options.Address.IsValid() {
		s.forwarder = forward.New(options.Address)
		go s.forwarder.Run(ctx)
	}
	handler := s.registry.Track(allowOrigins(s.routes()))
	http2Options := &http2.Server{MaxConcurrentStreams: maxStreams, MaxUploadBufferPerConnection: uploadBuffer, MaxUploadBufferPerStream: uploadBuffer}
	s.http = &http.Server{
		Handler:           h2c.NewHandler(handler, http2Options),
		ConnContext:       s.registry.ConnContext,
		ReadHeaderTimeout: readHeaderTimeout,
	}
	return s
}

// Serve accepts connections until Close.
func (s *Server) Serve(listener net.Listener) error { return s.http.Serve(s.registry.Listen(listener)) }

// Close ends all listeners and connections.
func (s *Server) Close() error {
	s.stop()
	return s.http.Close()
}

// waking has the forwarder look more often while clients deal with processes.
func (s *Server) waking(next http.Handler) http.Handler {
	if s.forwarder == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.forwarder.Wake()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) routes() http.Handler {
	rpcOptions := []connect.HandlerOption{connect.WithReadMaxBytes(maxMessage), connect.WithCompressMinBytes(minCompress)}
	manager := proc.NewManager(reaper.New(s.options.OwnsMachine))
	mux := http.NewServeMux()
	protect := func(pattern string, handler http.Handler) { mux.Handle(pattern, s.requireToken(handler)) }

	processPath, processes := processpbconnect.NewProcessHandler(proc.NewService(manager, s.state), rpcOptions...)
	protect(processPath, s.waking(processes))
	filesystemPath, filesystem := filesystempbconnect.NewFilesystemHandler(files.NewService(s.state), rpcOptions...)
	protect(filesystemPath, filesystem)

	transfer := files.NewTransfer(s.state)
	mux.HandleFunc("GET /files", transfer.Download) // these two check signatures themselves
	mux.HandleFunc("POST /files", transfer.Upload)
	protect("POST /files/compose", http.HandlerFunc(transfer.Compose))

	protect("GET /metrics", metrics.NewSampler())
	protect("GET /envs", http.HandlerFunc(s.envs))

	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("POST /init", s.init)
	mux.HandleFunc("POST /sync", s.hostOnly(s.sync))
	return mux
}
