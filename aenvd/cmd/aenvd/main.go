package main

import (
	_ "connectrpc.com/connect"
	_ "github.com/creack/pty"
	_ "github.com/fsnotify/fsnotify"
	_ "golang.org/x/net/http2"
	_ "golang.org/x/sys/unix"
	_ "google.golang.org/protobuf/proto"
)

func main() {}
