// Serves HTTP, server-sent events and WebSocket on a port inside a sandbox; the standard library is all it needs.
package main

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

func main() {
	http.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen-Host", r.Host)
		fmt.Fprintf(w, "hello from %s %s\n", r.Method, r.URL.RequestURI())
	})
	http.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	})
	http.HandleFunc("/events", events)
	http.HandleFunc("/ws", webSocket)
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}

func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range 5 {
		fmt.Fprintf(w, "data: %d\n\n", i)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Echoes frames (RFC 6455) until the client closes.
func webSocket(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
		base64.StdEncoding.EncodeToString(sum[:]))
	for echoFrame(conn, buffered) == nil {
	}
}

func echoFrame(conn net.Conn, from io.Reader) error {
	head := make([]byte, 2)
	if _, err := io.ReadFull(from, head); err != nil {
		return err
	}
	length := uint64(head[1] & 0x7f)
	if length == 126 {
		var short [2]byte
		if _, err := io.ReadFull(from, short[:]); err != nil {
			return err
		}
		length = uint64(binary.BigEndian.Uint16(short[:]))
	} else if length == 127 {
		var long [8]byte
		if _, err := io.ReadFull(from, long[:]); err != nil {
			return err
		}
		length = binary.BigEndian.Uint64(long[:])
	}
	var mask [4]byte
	if _, err := io.ReadFull(from, mask[:]); err != nil {
		return err
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(from, data); err != nil {
		return err
	}
	for i := range data {
		data[i] ^= mask[i%4]
	}
	out := []byte{head[0]}
	switch {
	case length < 126:
		out = append(out, byte(length))
	case length < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, 126), uint16(length))
	default:
		out = binary.BigEndian.AppendUint64(append(out, 127), length)
	}
	_, err := conn.Write(append(out, data...))
	if err == nil && head[0]&0x0f == 8 {
		return io.EOF
	}
	return err
}
