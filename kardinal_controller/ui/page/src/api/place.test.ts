import { expect, test } from "vitest";

import { apiUrl } from "./place";

test("the API is beside the page, whatever path it is served below", () => {
  expect(apiUrl("viewer", "https://host/ui/")).toBe("https://host/api/ui/v1/viewer");
  expect(apiUrl("viewer", "https://host/kardinal/ui/")).toBe("https://host/kardinal/api/ui/v1/viewer");
});
