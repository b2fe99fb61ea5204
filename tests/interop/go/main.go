// Clients and servers that use the Go SDK of CloudEvents, for tests of the bridge.
//
// Each command prints one JSON object per line: the CloudEvents that it received, or what it sent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/IBM/sarama"
	"github.com/cloudevents/sdk-go/protocol/kafka_sarama/v2"
	mqtt "github.com/cloudevents/sdk-go/protocol/mqtt_paho/v2"
	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/protocol"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/eclipse/paho.golang/paho"
	broker "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

var commands = map[string]func([]string) error{
	"kafka-receive": kafkaReceive,
	"kafka-send":    kafkaSend,
	"mqtt-receive":  mqttReceive,
	"mqtt-send":     mqttSend,
	"http-receive":  httpReceive,
	"http-send":     httpSend,
	"verify":        verify,
	"mochi":         mochi,
}

func main() {
	log.SetFlags(0)
	command := commands[os.Args[1]]
	if command == nil {
		log.Fatalf("there is no command %s", os.Args[1])
	}
	if err := command(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func show(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}

// An approval whose data is a slice of bytes: the SDK writes it as data_base64 in structured mode.
func approval(body string) cloudevents.Event {
	event := cloudevents.NewEvent()
	event.SetType("azure.scheduledevents.approve.v1")
	event.SetSource("/go")
	event.SetID("go-" + strconv.Itoa(os.Getpid()))
	if err := event.SetData(cloudevents.ApplicationJSON, []byte(body)); err != nil {
		log.Fatal(err)
	}
	return event
}

func in(mode string) context.Context {
	if mode == "structured" {
		return binding.WithForceStructured(context.Background())
	}
	return binding.WithForceBinary(context.Background())
}

func receive(from any, count int) error {
	client, err := cloudevents.NewClient(from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	return client.StartReceiver(ctx, func(event cloudevents.Event) {
		show(event)
		if count--; count == 0 {
			os.Exit(0)
		}
	})
}

func send(to any, mode, body string) error {
	client, err := cloudevents.NewClient(to)
	if err != nil {
		return err
	}
	event := approval(body)
	if result := client.Send(in(mode), event); cloudevents.IsUndelivered(result) || protocol.IsNACK(result) {
		return result
	}
	show(map[string]string{"id": event.ID()})
	return nil
}

func kafkaConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	return config
}

// BROKER TOPIC COUNT
func kafkaReceive(args []string) error {
	count, _ := strconv.Atoi(args[2])
	group := "go-" + args[1]
	consumer, err := kafka_sarama.NewConsumer([]string{args[0]}, kafkaConfig(), group, args[1])
	if err != nil {
		return err
	}
	return receive(consumer, count)
}

// BROKER TOPIC MODE BODY
func kafkaSend(args []string) error {
	sender, err := kafka_sarama.NewSender([]string{args[0]}, kafkaConfig(), args[1])
	if err != nil {
		return err
	}
	defer sender.Close(context.Background())
	return send(sender, args[2], args[3])
}

func mqttClient(address string, options ...mqtt.Option) (*mqtt.Protocol, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	config := &paho.ClientConfig{ClientID: "go-" + strconv.Itoa(os.Getpid()), Conn: conn}
	connect := mqtt.WithConnect(&paho.Connect{KeepAlive: 30, CleanStart: true, ClientID: config.ClientID})
	return mqtt.New(context.Background(), config, append(options, connect)...)
}

// ADDRESS TOPIC COUNT
func mqttReceive(args []string) error {
	count, _ := strconv.Atoi(args[2])
	subscribe := mqtt.WithSubscribe(&paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: args[1], QoS: 1}}})
	client, err := mqttClient(args[0], subscribe)
	if err != nil {
		return err
	}
	show(map[string]bool{"ready": true})
	return receive(client, count)
}

// ADDRESS TOPIC MODE BODY
func mqttSend(args []string) error {
	client, err := mqttClient(args[0], mqtt.WithPublish(&paho.Publish{Topic: args[1], QoS: 1}))
	if err != nil {
		return err
	}
	defer client.Close(context.Background())
	return send(client, args[2], args[3])
}

// COUNT; the first line says where it listens.
func httpReceive(args []string) error {
	count, _ := strconv.Atoi(args[0])
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	show(map[string]string{"url": "http://" + listener.Addr().String() + "/"})
	server, err := cehttp.New(cehttp.WithListener(listener))
	if err != nil {
		return err
	}
	return receive(server, count)
}

// URL TOKEN MODE BODY
func httpSend(args []string) error {
	token := cehttp.WithHeader("Authorization", "Bearer "+args[1])
	sender, err := cehttp.New(cehttp.WithTarget(args[0]), token)
	if err != nil {
		return err
	}
	return send(sender, args[2], args[3])
}

type request struct {
	Secret  string
	Headers map[string]string
	Body    string
}

// The requests on standard input, signed by Standard Webhooks.
func verify([]string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var asked []request
	if err := json.Unmarshal(text, &asked); err != nil {
		return err
	}
	for _, each := range asked {
		hook, err := webhooks.NewWebhook(each.Secret)
		if err != nil {
			return err
		}
		headers := http.Header{}
		for name, value := range each.Headers {
			headers.Set(name, value)
		}
		show(map[string]bool{"verified": hook.Verify([]byte(each.Body), headers) == nil})
	}
	return nil
}

// An MQTT server; the first line says where it listens.
func mochi([]string) error {
	server := broker.New(&broker.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err := server.AddHook(new(auth.AllowHook), nil); err != nil {
		return err
	}
	tcp := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0"})
	if err := server.AddListener(tcp); err != nil {
		return err
	}
	if err := server.Serve(); err != nil {
		return err
	}
	show(map[string]string{"address": tcp.Address()})
	select {}
}
