/** Reads Server-Sent Events from the body of an answer. */

/** @typedef {{event: string, id: string, data: string}} Message */

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} alive called whenever something arrives, comments too
 * @returns {AsyncGenerator<Message>}
 */
export async function* messages(body, alive) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = parse(block);
      if (message !== null) yield message;
    }
  }
}

/**
 * One block of lines; null for a mere comment.
 * @param {string} block
 * @returns {Message | null}
 */
function parse(block) {
  /** @type {Record<string, string[]>} */
  const fields = {};
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^(\w*):? ?(.*)$/.exec(line) ?? [];
    if (name !== "") (fields[name] ??= []).push(value);
  }
  if (fields["data"] === undefined && fields["id"] === undefined) return null;
  const event = fields["event"]?.[0] ?? (fields["data"] === undefined ? "position" : "message");
  return { event, id: fields["id"]?.[0] ?? "", data: fields["data"]?.join("\n") ?? "" };
}
