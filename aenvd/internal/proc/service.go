package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "aenvd/internal/gen/process"
	"aenvd/internal/paths"
	"aenvd/internal/rpc"
	"aenvd/internal/state"
	"aenvd/internal/users"
)

// Service is the Connect service process.Process.
type Service struct {
	manager *Manager
	state   *state.State
}

// NewService serves the processes of manager.
func NewService(manager *Manager, state *state.State) *Service { return &Service{manager, state} }

// List implements processpbconnect.ProcessHandler.
func (s *Service) List(context.Context, *connect.Request[pb.ListRequest]) (*connect.Response[pb.ListResponse], error) {
	return connect.NewResponse(&pb.ListResponse{Processes: s.manager.List()}), nil
}

// Start implements processpbconnect.ProcessHandler. The deadline of the request is that of the process, also when the
// client goes away before.
func (s *Service) Start(ctx context.Context, req *connect.Request[pb.StartRequest], stream *connect.ServerStream[pb.StartResponse]) error {
	user, err := rpc.User(s.state, req.Header())
	if err != nil {
		return err
	}
	spec, err := s.spec(req.Msg, user)
	if err != nil {
		return err
	}
	process, sub, err := s.manager.Start(spec)
	if err != nil {
		return connect.NewError(connect.CodeInternal, err)
	}
	defer sub.Leave()
	if deadline, ok := ctx.Deadline(); ok {
		killAt(process, deadline)
	}
	return pump(ctx, process, sub, rpc.Keepalive(req.Header()), func(event *pb.ProcessEvent) error {
		return stream.Send(&pb.StartResponse{Event: event})
	})
}

func killAt(process *Process, deadline time.Time) {
	timer := time.AfterFunc(time.Until(deadline), process.Kill)
	go func() {
		<-process.Done()
		timer.Stop()
	}()
}

func (s *Service) spec(msg *pb.StartRequest, user users.User) (Spec, error) {
	config := msg.GetProcess()
	if config == nil {
		return Spec{}, connect.NewError(connect.CodeInvalidArgument, errors.New("the request has no process"))
	}
	if err := checkStrings(config.GetCmd(), config.GetArgs(), config.GetEnvs()); err != nil {
		return Spec{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	cwd, err := s.cwd(config.GetCwd(), user)
	if err != nil {
		return Spec{}, connect.NewError(connect.CodeInvalidArgument, err)
	}
	spec := Spec{
		Config: config, User: user, Cwd: cwd, Tag: msg.Tag, Stdin: msg.Stdin == nil || msg.GetStdin(),
		Env: environment(user, s.state.ProcessEnv(), config.GetEnvs()),
	}
	if msg.Pty != nil {
		spec.Size = windowSize(msg.GetPty())
	}
	return spec, nil
}

func (s *Service) cwd(asked string, user users.User) (string, error) {
	_, workdir := s.state.Defaults()
	cwd, err := paths.Resolve(asked, user.Home, workdir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(cwd)
	switch {
	case os.IsNotExist(err) && asked == "":
		return "/", nil // a default that the image does not have must not keep commands from running
	case os.IsNotExist(err):
		return "", fmt.Errorf("cwd '%s' does not exist", cwd)
	case err != nil:
		return "", fmt.Errorf("cwd '%s': %w", cwd, err)
	case !info.IsDir():
		return "", fmt.Errorf("cwd '%s' is not a directory", cwd)
	}
	return cwd, nil
}

func windowSize(terminal *pb.PTY) *Size {
	size := terminal.GetSize()
	return &Size{Cols: clampSize(size.GetCols(), 80), Rows: clampSize(size.GetRows(), 24)}
}

func clampSize(size uint32, fallback uint16) uint16 {
	if size == 0 {
		return fallback
	}
	return uint16(min(size, 1<<16-1))
}

// Connect implements processpbconnect.ProcessHandler.
func (s *Service) Connect(ctx context.Context, req *connect.Request[pb.ConnectRequest], stream *connect.ServerStream[pb.ConnectResponse]) error {
	process, err := s.find(req.Msg.GetProcess(), true)
	if err != nil {
		return err
	}
	sub := process.Subscribe()
	defer sub.Leave()
	return pump(ctx, process, sub, rpc.Keepalive(req.Header()), func(event *pb.ProcessEvent) error {
		return stream.Send(&pb.ConnectResponse{Event: event})
	})
}

func (s *Service) find(selector *pb.ProcessSelector, ended bool) (*Process, error) {
	process, err := s.manager.Find(selector, ended)
	if errors.As(err, &NotFoundError{}) {
		return nil, connect.NewError(connect.CodeNotFound, err)
	}
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return process, nil
}

// Update implements processpbconnect.ProcessHandler.
func (s *Service) Update(_ context.Context, req *connect.Request[pb.UpdateRequest]) (*connect.Response[pb.UpdateResponse], error) {
	process, err := s.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if req.Msg.Pty != nil {
		if process.tty == nil {
			return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("the process has no terminal"))
		}
		if err := resize(process.tty, *windowSize(req.Msg.GetPty())); err != nil {
			return nil, connect.NewError(connect.CodeInternal, fmt.Errorf("resize: %w", err))
		}
	}
	return connect.NewResponse(&pb.UpdateResponse{}), nil
}

// SendInput implements processpbconnect.ProcessHandler.
func (s *Service) SendInput(ctx context.Context, req *connect.Request[pb.SendInputRequest]) (*connect.Response[pb.SendInputResponse], error) {
	process, err := s.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if err := write(ctx, process, req.Msg.GetInput()); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.SendInputResponse{}), nil
}

// StreamInput implements processpbconnect.ProcessHandler.
func (s *Service) StreamInput(ctx context.Context, stream *connect.ClientStream[pb.StreamInputRequest]) (*connect.Response[pb.StreamInputResponse], error) {
	var process *Process
	for stream.Receive() {
		var err error
		switch event := stream.Msg().GetEvent().(type) {
		case *pb.StreamInputRequest_Start:
			process, err = s.find(event.Start.GetProcess(), false)
		case *pb.StreamInputRequest_Data:
			if process == nil {
				return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("data before start: the first message names the process"))
			}
			err = write(ctx, process, event.Data.GetInput())
		}
		if err != nil {
			return nil, err
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.StreamInputResponse{}), nil
}

func write(ctx context.Context, process *Process, input *pb.ProcessInput) error {
	var data []byte
	switch from := input.GetInput().(type) {
	case *pb.ProcessInput_Stdin:
		data = from.Stdin
	case *pb.ProcessInput_Pty:
		if process.tty == nil {
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("the process has no terminal: send `stdin`"))
		}
		data = from.Pty
	default:
		return connect.NewError(connect.CodeInvalidArgument, errors.New("the request has no input"))
	}
	return inputError(ctx, process.Write(ctx, data))
}

func inputError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoInput):
		return connect.NewError(connect.CodeFailedPrecondition, err)
	case ctx.Err() != nil:
		return rpc.ContextError(ctx)
	}
	return connect.NewError(connect.CodeInternal, err)
}

// SendSignal implements processpbconnect.ProcessHandler.
func (s *Service) SendSignal(_ context.Context, req *connect.Request[pb.SendSignalRequest]) (*connect.Response[pb.SendSignalResponse], error) {
	process, err := s.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	switch req.Msg.GetSignal() {
	case pb.Signal_SIGNAL_SIGKILL, pb.Signal_SIGNAL_SIGTERM:
	default:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("signal %s: SIGTERM and SIGKILL can be sent", req.Msg.GetSignal()))
	}
	if err := process.Signal(syscall.Signal(req.Msg.GetSignal())); err != nil {
		return nil, connect.NewError(connect.CodeInternal, err)
	}
	return connect.NewResponse(&pb.SendSignalResponse{}), nil
}

// CloseStdin implements processpbconnect.ProcessHandler.
func (s *Service) CloseStdin(ctx context.Context, req *connect.Request[pb.CloseStdinRequest]) (*connect.Response[pb.CloseStdinResponse], error) {
	process, err := s.find(req.Msg.GetProcess(), false)
	if err != nil {
		return nil, err
	}
	if err := inputError(ctx, process.CloseInput(ctx)); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.CloseStdinResponse{}), nil
}
