// The same as ../crawler.cpp: crawler URL [DEPTH]
package main

import (
	"context"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

var link = regexp.MustCompile(`(?i)<a\s[^>]*href\s*=\s*["']([^"']+)["']`)

type crawler struct {
	ctx    context.Context
	host   string
	client http.Client
	tokens chan struct{} // of the rate
	places chan struct{} // requests at a time
	mutex  sync.Mutex
	seen   map[string]bool
	pages  sync.WaitGroup
}

// add takes a page on, unless it is known or on another site.
func (c *crawler) add(page *url.URL, depth int) {
	page.Fragment = ""
	text := page.String()
	c.mutex.Lock()
	known := c.seen[text]
	c.seen[text] = true
	c.mutex.Unlock()
	if known || page.Host != c.host {
		return
	}
	c.pages.Add(1)
	go func() {
		defer c.pages.Done()
		if err := c.visit(page, depth); err != nil {
			fmt.Println(err, text)
		}
	}()
}

func (c *crawler) get(text string) (int, []byte, error) {
	select {
	case <-c.ctx.Done():
		return 0, nil, c.ctx.Err()
	case c.places <- struct{}{}:
	}
	defer func() { <-c.places }()
	request, err := http.NewRequestWithContext(c.ctx, "GET", text, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode >= 500 {
		return 0, nil, fmt.Errorf("status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 4<<20+1))
	if err == nil && len(body) > 4<<20 {
		err = fmt.Errorf("the body is too long")
	}
	return response.StatusCode, body, err
}

func (c *crawler) visit(page *url.URL, depth int) error {
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.tokens:
	}
	status, body, err := c.get(page.String())
	for pause, try := 100*time.Millisecond, 1; err != nil && try < 3; pause, try = 2*pause, try+1 {
		select {
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-time.After(time.Duration(rand.Int63n(int64(pause)))):
		}
		status, body, err = c.get(page.String())
	}
	if err != nil {
		return err
	}
	fmt.Println(status, len(body), page)
	if depth == 0 {
		return nil
	}
	for _, found := range link.FindAllSubmatch(body, -1) {
		if to, err := page.Parse(string(found[1])); err == nil {
			c.add(to, depth-1)
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "crawler URL [DEPTH]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	site, err := url.Parse(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	depth := 3
	if len(os.Args) > 2 {
		depth, _ = strconv.Atoi(os.Args[2])
	}
	c := &crawler{ctx: ctx, host: site.Host, seen: map[string]bool{}, tokens: make(chan struct{}, 10),
		places: make(chan struct{}, 16)}
	c.client.Timeout = 30 * time.Second
	c.client.Transport = &http.Transport{MaxConnsPerHost: 4}
	go func() {
		for ticker := time.NewTicker(20 * time.Millisecond); ; <-ticker.C {
			select {
			case c.tokens <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	c.add(site, depth)
	c.pages.Wait()
}
