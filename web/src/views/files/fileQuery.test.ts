import { describe, expect, it } from "vitest";
import { decodeText } from "@/views/files/fileQuery";

const utf8 = (text: string) => new TextEncoder().encode(text);

describe("a text", () => {
  it("is decoded together with its byte order mark", () => {
    expect(decodeText(utf8("Café"))).toEqual({ text: "Café", bom: "", isLossy: false });
    const { text, bom, isLossy } = decodeText(utf8("\ufeffCafé"))!;
    expect([text, isLossy, utf8(bom + text)]).toEqual(["Café", false, utf8("\ufeffCafé")]);
  });

  it("with bytes that are not UTF-8 says that it is not the whole file", () => {
    const bytes = new Uint8Array([...utf8("Caf"), 0xe9, ...utf8(" and a longer text around it".repeat(3))]);
    expect(decodeText(bytes)).toMatchObject({ isLossy: true });
    // A file that holds the character itself loses nothing.
    expect(decodeText(utf8("Caf\ufffd"))).toMatchObject({ isLossy: false });
  });

  it("is none with zero bytes or many that are invalid", () => {
    expect(decodeText(new Uint8Array([65, 0, 66]))).toBeNull();
    expect(decodeText(new Uint8Array([0xe9, 0xe8, 0xff]))).toBeNull();
  });
});
