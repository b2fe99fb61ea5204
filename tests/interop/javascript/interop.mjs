// Clients in JavaScript, for tests of the bridge: the SDK of CloudEvents with kafkajs, mqtt and HTTP, EventSource, Standard
// Webhooks, ajv and the parser of AsyncAPI. Each command prints one JSON object per line.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import http from "node:http";

const require = createRequire(process.env.NODE_PATH + "/");
const { CloudEvent, HTTP, Kafka: Binding, MQTT, MQTTMessageFactory } = require("cloudevents");

const show = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const stdin = () => readFileSync(0, "utf8");
const vote = (body) =>
  new CloudEvent({
    id: `javascript-${process.pid}`,
    type: "azure.scheduledevents.approve.v1",
    source: "/javascript",
    datacontenttype: "application/json",
    data: JSON.parse(body),
  });
const shown = (event) => show(JSON.parse(event.toString()));

// Prints each CloudEvent, and leaves after COUNT of them.
function counting(count) {
  return (event) => {
    event.validate();
    shown(event);
    if (--count === 0) process.exit(0);
  };
}

function kafka(broker) {
  const { Kafka, logLevel } = require("kafkajs");
  return new Kafka({ clientId: "javascript", brokers: [broker], logLevel: logLevel.NOTHING });
}

const text = (value) => (Buffer.isBuffer(value) ? value.toString() : value);

const commands = {
  async "kafka-receive"(broker, topic, count) {
    const tell = counting(Number(count));
    const consumer = kafka(broker).consumer({ groupId: `javascript-${topic}` });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await consumer.run({
      eachMessage: async ({ message }) => {
        const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, text(value)]));
        tell(Binding.toEvent({ headers, key: text(message.key), value: text(message.value), body: text(message.value) }));
      },
    });
  },

  async "kafka-send"(broker, topic, mode, body) {
    const producer = kafka(broker).producer();
    await producer.connect();
    const event = vote(body);
    const { headers, value, body: whole } = Binding[mode](event);
    const written = value ?? whole;
    const known = Object.entries(headers).filter(([, each]) => each !== undefined).map(([name, each]) => [name, String(each)]);
    await producer.send({
      topic,
      messages: [{ headers: Object.fromEntries(known), value: typeof written === "string" ? written : JSON.stringify(written) }],
    });
    await producer.disconnect();
    show({ id: event.id });
  },

  // The state topic as a table: prints it whenever it changes, and leaves after COUNT tables.
  async table(broker, topic, count) {
    const pending = {};
    const consumer = kafka(broker).consumer({ groupId: `javascript-table-${topic}` });
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    let left = Number(count);
    await consumer.run({
      eachMessage: async ({ message }) => {
        const before = JSON.stringify(pending);
        if (message.value === null) delete pending[text(message.key)];
        else pending[text(message.key)] = JSON.parse(text(message.value));
        if (JSON.stringify(pending) !== before) {
          show(pending);
          if (--left === 0) process.exit(0);
        }
      },
    });
  },

  async "mqtt-receive"(url, topic, count) {
    const tell = counting(Number(count));
    const client = await require("mqtt").connectAsync(url, { protocolVersion: 5 });
    client.on("message", (_, payload, packet) => {
      const { contentType, userProperties } = packet.properties ?? {};
      if (payload.length) tell(MQTT.toEvent(MQTTMessageFactory(contentType, userProperties ?? {}, payload.toString()), true));
    });
    await client.subscribeAsync(topic, { qos: 1 });
    show({ ready: true });
  },

  async "mqtt-send"(url, topic, mode, body) {
    const client = await require("mqtt").connectAsync(url, { protocolVersion: 5 });
    const event = vote(body);
    const message = MQTT[mode](event);
    const known = Object.entries(message["User Properties"]).filter(([, each]) => each !== undefined);
    const userProperties = Object.fromEntries(known.map(([name, each]) => [name, String(each)]));
    const properties = { contentType: message.PUBLISH["Content Type"], ...(known.length && { userProperties }) };
    const payload = typeof message.payload === "string" ? message.payload : JSON.stringify(message.payload);
    await client.publishAsync(topic, payload, { qos: 1, properties });
    await client.endAsync();
    show({ id: event.id });
  },

  async "http-receive"(count) {
    const tell = counting(Number(count));
    const server = http.createServer((request, response) => {
      let body = "";
      request.on("data", (part) => (body += part));
      request.on("end", () => {
        response.writeHead(204).end(() => [HTTP.toEvent({ headers: request.headers, body })].flat().forEach(tell));
      });
    });
    server.listen(0, "127.0.0.1", () => show({ url: `http://127.0.0.1:${server.address().port}/` }));
  },

  async "http-send"(url, token, mode, body) {
    const event = vote(body);
    const message = HTTP[mode](event);
    const headers = { ...message.headers, authorization: `Bearer ${token}` };
    const answer = await fetch(url, { method: "POST", headers, body: message.body });
    show({ id: event.id, status: answer.status });
    if (answer.status !== 202) throw new Error(await answer.text());
  },

  // The stream until COUNT CloudEvents came; LAST resumes after that id. The first line is the opening.
  async stream(url, token, count, last) {
    const { EventSource } = await import(require.resolve("eventsource"));
    let left = Number(count);
    const added = { authorization: `Bearer ${token}`, ...(last && { "last-event-id": last }) };
    const source = new EventSource(url, {
      fetch: (where, init) => fetch(where, { ...init, headers: { ...init.headers, ...added } }),
    });
    source.addEventListener("connected", (event) => {
      if (event.data !== undefined) show({ named: "connected", id: event.lastEventId, data: event.data });
    });
    source.addEventListener("message", (event) => {
      show({ id: event.lastEventId, event: JSON.parse(event.data) });
      if (--left === 0) process.exit(0);
    });
  },

  async verify() {
    const { Webhook } = require("standardwebhooks");
    for (const { secret, headers, body } of JSON.parse(stdin())) {
      try {
        new Webhook(secret).verify(body, headers);
        show({ verified: true });
      } catch {
        show({ verified: false });
      }
    }
  },

  // Standard input: {"schemas": {NAME: schema}, "asyncapi": text}.
  async schemas() {
    const formats = require("ajv-formats").default;
    const { schemas, asyncapi } = JSON.parse(stdin());
    for (const [name, schema] of Object.entries(schemas)) {
      const Ajv = require("ajv/dist/2020").default;
      const ajv = formats(new Ajv({ strict: true, allErrors: true }));
      ajv.compile(schema);
      show({ compiled: name });
    }
    const { components } = require("js-yaml").load(asyncapi);
    for (const [name, message] of Object.entries(components.messages)) {
      const Ajv = require("ajv").default;
      const ajv = formats(new Ajv({ strict: true, allErrors: true })).addKeyword("components");
      const check = ajv.compile({ ...message.payload, components });
      if (!message.examples.every((each) => check(each.payload))) throw new Error(`${name}: ${JSON.stringify(check.errors)}`);
      show({ compiled: `asyncapi ${name}` });
    }
    const { Parser } = require("@asyncapi/parser");
    const { document, diagnostics } = await new Parser().parse(asyncapi);
    show({ asyncapi: Boolean(document), errors: diagnostics.filter((each) => each.severity === 0).map((each) => each.message) });
  },
};

const [name, ...words] = process.argv.slice(2);
await commands[name](...words).catch((error) => {
  console.error(error);
  process.exit(1);
});
