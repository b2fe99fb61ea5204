// Clients and servers on the JVM, for tests of the bridge: the Java SDK of CloudEvents with Kafka's own client, Kafka
// Streams, Standard Webhooks, and HiveMQ. Each command prints one JSON object per line.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.hivemq.embedded.EmbeddedHiveMQ;
import com.standardwebhooks.Webhook;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.core.message.Encoding;
import io.cloudevents.core.provider.EventFormatProvider;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.CloudEventDeserializer;
import io.cloudevents.kafka.CloudEventSerializer;
import java.net.URI;
import java.net.http.HttpHeaders;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.QueryableStoreTypes;

public class Interop {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "kafka-receive" -> receive(args[1], args[2], Integer.parseInt(args[3]));
            case "kafka-send" -> send(args[1], args[2], args[3], args[4]);
            case "table" -> table(args[1], args[2], Integer.parseInt(args[3]));
            case "verify" -> verify();
            case "hivemq" -> hivemq(Integer.parseInt(args[1]), Path.of(args[2]));
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static void show(Object value) throws Exception {
        System.out.println(JSON.writeValueAsString(value));
        System.out.flush();
    }

    private static String written(CloudEvent event) {
        return new String(EventFormatProvider.getInstance().resolveFormat(JsonFormat.CONTENT_TYPE).serialize(event));
    }

    private static void receive(String servers, String topic, int count) throws Exception {
        Properties keys = new Properties();
        keys.putAll(Map.of("bootstrap.servers", servers, "group.id", "java-" + topic, "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(keys, new StringDeserializer(), new CloudEventDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (count > 0) {
                for (var each : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(written(each.value()));
                    count--;
                }
            }
        }
    }

    private static void send(String servers, String topic, String mode, String body) throws Exception {
        CloudEvent vote = CloudEventBuilder.v1().withId("java-" + ProcessHandle.current().pid())
            .withType("azure.scheduledevents.approve.v1").withSource(URI.create("/java"))
            .withData("application/json", body.getBytes()).build();
        Map<String, Object> keys = mode.equals("binary") ? Map.of() : Map.of(
            CloudEventSerializer.ENCODING_CONFIG, Encoding.STRUCTURED,
            CloudEventSerializer.EVENT_FORMAT_CONFIG, JsonFormat.CONTENT_TYPE);
        var serializer = new CloudEventSerializer();
        serializer.configure(keys, false);
        try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", servers), new StringSerializer(), serializer)) {
            producer.send(new ProducerRecord<>(topic, vote)).get(30, TimeUnit.SECONDS);
        }
        show(Map.of("id", vote.getId()));
    }

    // A KTable of the state topic: prints it whenever it changes, until it has been empty again or COUNT tables came.
    private static void table(String servers, String topic, int count) throws Exception {
        Properties keys = new Properties();
        Path folder = Files.createTempDirectory("interop-streams");
        keys.putAll(Map.of(StreamsConfig.APPLICATION_ID_CONFIG, "interop-" + topic, StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers,
            StreamsConfig.STATE_DIR_CONFIG, folder.toString(), StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100));
        StreamsBuilder builder = new StreamsBuilder();
        builder.globalTable(topic, Consumed.with(Serdes.String(), Serdes.String()), Materialized.as("pending"));
        try (var streams = new KafkaStreams(builder.build(), keys)) {
            streams.start();
            Map<String, JsonNode> last = null;
            while (count > 0) {
                if (streams.state() == KafkaStreams.State.RUNNING) {
                    Map<String, JsonNode> now = new TreeMap<>();
                    var query = StoreQueryParameters.fromNameAndType("pending", QueryableStoreTypes.<String, String>keyValueStore());
                    try (var all = streams.store(query).all()) {
                        while (all.hasNext()) {
                            var each = all.next();
                            now.put(each.key, JSON.readTree(each.value));
                        }
                    }
                    if (!now.equals(last)) {
                        show(now);
                        last = now;
                        count--;
                    }
                }
                Thread.sleep(50);
            }
        }
    }

    private static void verify() throws Exception {
        for (JsonNode each : JSON.readTree(System.in.readAllBytes())) {
            Map<String, List<String>> headers = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
            each.get("headers").fields().forEachRemaining(one -> headers.put(one.getKey(), List.of(one.getValue().asText())));
            boolean verified = true;
            try {
                new Webhook(each.get("secret").asText()).verify(each.get("body").asText(), HttpHeaders.of(headers, (a, b) -> true));
            } catch (com.standardwebhooks.exceptions.WebhookVerificationException error) {
                verified = false;
            }
            show(Map.of("verified", verified));
        }
    }

    private static void hivemq(int port, Path folder) throws Exception {
        Path conf = Files.createDirectories(folder.resolve("conf"));
        Files.writeString(conf.resolve("config.xml"), """
            <?xml version="1.0"?>
            <hivemq><listeners><tcp-listener><port>%d</port><bind-address>127.0.0.1</bind-address></tcp-listener></listeners>
            <persistence><mode>in-memory</mode></persistence>
            <anonymous-usage-statistics><enabled>false</enabled></anonymous-usage-statistics></hivemq>
            """.formatted(port));
        EmbeddedHiveMQ server = EmbeddedHiveMQ.builder().withConfigurationFolder(conf)
            .withDataFolder(Files.createDirectories(folder.resolve("data")))
            .withExtensionsFolder(Files.createDirectories(folder.resolve("extensions"))).build();
        server.start().join();
        show(Map.of("ready", true));
        Thread.currentThread().join();
    }
}
