// CloudEvents on MQTT by the JavaScript SDK. Standard input is a JSON list of {"read": message} and
// {"write": cloudevent, "mode": "binary" | "structured"}; standard output has one answer for each.
const { CloudEvent, MQTT, MQTTMessageFactory } = require("cloudevents");

function read(message) {
  const { contentType, userProperties, payload } = message;
  const event = MQTT.toEvent(MQTTMessageFactory(contentType, userProperties, payload), true);
  event.validate();
  return JSON.parse(event.toString());
}

function write(attributes, mode) {
  const message = MQTT[mode](new CloudEvent(attributes));
  const userProperties = Object.entries(message["User Properties"])
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, String(value)]);
  return { contentType: message.PUBLISH["Content Type"], userProperties, payload: JSON.stringify(message.payload) };
}

const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.map((each) => (each.read ? read(each.read) : write(each.write, each.mode)));
process.stdout.write(JSON.stringify(answers));
