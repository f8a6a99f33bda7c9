package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "aenvd/internal/gen/filesystem"
	"aenvd/internal/paths"
	"aenvd/internal/rpc"
	"aenvd/internal/state"
	"aenvd/internal/users"
)

// Service is the Connect service filesystem.Filesystem.
type Service struct {
	state    *state.State
	watchers *watchers
}

// NewService takes users and default directory from state.
func NewService(state *state.State) *Service {
	return &Service{state, newWatchers()}
}

// Stat implements filesystempbconnect.FilesystemHandler.
func (s *Service) Stat(_ context.Context, req *connect.Request[pb.StatRequest]) (*connect.Response[pb.StatResponse], error) {
	_, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	entry, err := describe(path)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.StatResponse{Entry: entry}), nil
}

// MakeDir implements filesystempbconnect.FilesystemHandler.
func (s *Service) MakeDir(_ context.Context, req *connect.Request[pb.MakeDirRequest]) (*connect.Response[pb.MakeDirResponse], error) {
	user, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil, connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("directory '%s' already exists", path))
	case err == nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path '%s' exists and is not a directory", path))
	}
	if err := makeDirs(path, user); err != nil {
		return nil, pathError(path, err)
	}
	entry, err := describe(path)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MakeDirResponse{Entry: entry}), nil
}

// Move implements filesystempbconnect.FilesystemHandler.
func (s *Service) Move(_ context.Context, req *connect.Request[pb.MoveRequest]) (*connect.Response[pb.MoveResponse], error) {
	user, source, err := s.resolve(req.Header(), req.Msg.GetSource())
	if err != nil {
		return nil, err
	}
	_, destination, err := s.resolve(req.Header(), req.Msg.GetDestination())
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(source); err != nil {
		return nil, pathError(source, err)
	}
	if err := makeDirs(filepath.Dir(destination), user); err != nil {
		return nil, pathError(destination, err)
	}
	if err := os.Rename(source, destination); err != nil {
		return nil, pathError(destination, err)
	}
	entry, err := describe(destination)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&pb.MoveResponse{Entry: entry}), nil
}

// Remove implements filesystempbconnect.FilesystemHandler.
func (s *Service) Remove(_ context.Context, req *connect.Request[pb.RemoveRequest]) (*connect.Response[pb.RemoveResponse], error) {
	_, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if path == "/" {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("the root directory cannot be removed"))
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, pathError(path, err)
	}
	return connect.NewResponse(&pb.RemoveResponse{}), nil
}

// ListDir implements filesystempbconnect.FilesystemHandler.
func (s *Service) ListDir(_ context.Context, req *connect.Request[pb.ListDirRequest]) (*connect.Response[pb.ListDirResponse], error) {
	_, path, err := s.resolve(req.Header(), req.Msg.GetPath())
	if err != nil {
		return nil, err
	}
	if err := checkDir(path); err != nil {
		return nil, err
	}
	entries, err := list(path, max(int(req.Msg.GetDepth()), 1), users.LoadNames())
	if err != nil {
		return nil, pathError(path, err)
	}
	return connect.NewResponse(&pb.ListDirResponse{Entries: entries}), nil
}

// list gives the entries below dir, each directory before its content. It does not follow symbolic links, but for the
// first one.
func list(dir string, depth int, names users.Names) ([]*pb.EntryInfo, error) {
	children, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var entries []*pb.EntryInfo
	for _, child := range children {
		path := filepath.Join(dir, child.Name())
		entry, err := entryInfo(path, names)
		if os.IsNotExist(err) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
		if !child.IsDir() || depth <= 1 {
			continue
		}
		below, err := list(path, depth-1, names)
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		entries = append(entries, below...)
	}
	return entries, nil
}

func (s *Service) resolve(header http.Header, path string) (users.User, string, error) {
	user, err := rpc.User(s.state, header)
	if err != nil {
		return user, "", err
	}
	_, workdir := s.state.Defaults()
	absolute, err := paths.Resolve(path, user.Home, workdir)
	if err != nil {
		return user, "", connect.NewError(connect.CodeInvalidArgument, err)
	}
	return user, absolute, nil
}

func describe(path string) (*pb.EntryInfo, error) {
	entry, err := entryInfo(path, users.LoadNames())
	if err != nil {
		return nil, pathError(path, err)
	}
	return entry, nil
}

func checkDir(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return pathError(path, err)
	}
	if !info.IsDir() {
		return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("path '%s' is not a directory", path))
	}
	return nil
}

// pathError gives the error of a system call the code that clients expect.
func pathError(path string, err error) error {
	code := connect.CodeInternal
	switch {
	case os.IsNotExist(err):
		return connect.NewError(connect.CodeNotFound, fmt.Errorf("path '%s' does not exist", path))
	case errors.Is(err, unix.ELOOP):
		code = connect.CodeFailedPrecondition
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL):
		code = connect.CodeInvalidArgument
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		code = connect.CodeResourceExhausted
	case os.IsPermission(err), errors.Is(err, unix.EROFS):
		code = connect.CodePermissionDenied
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.EBUSY), errors.Is(err, unix.EXDEV):
		code = connect.CodeFailedPrecondition
	}
	return connect.NewError(code, fmt.Errorf("path '%s': %w", path, reason(err)))
}

// reason is the system's word for it, without paths: those of a *fs.PathError may be of files below.
func reason(err error) error {
	var number unix.Errno
	if errors.As(err, &number) {
		return number
	}
	return err
}
