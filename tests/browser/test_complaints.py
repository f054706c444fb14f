"""What a page says of the server: that it is gone, and that it was restarted."""

DOWN = """const fetched = window.fetch;
window.fetch = (...asked) => window.down ? Promise.reject(new TypeError("nobody answers")) : fetched(...asked);"""


def test_an_open_page_waits_for_a_server_that_is_restarted_and_says_so_in_a_sentence(address, open_page):
    page = open_page()
    page.add_init_script(DOWN)
    page.goto(address)
    page.wait_for_selector("#curve [data-state=drawn]")
    page.evaluate("window.down = true; fetch('gradio_api/run/predict', {method: 'POST'}).catch(() => 0)")
    page.wait_for_selector(".complaint:has-text('come back')")
    page.route("**/status", lambda route: route.fulfill(headers={"x-playground-server": "another start"}))
    page.evaluate("window.down = false")
    page.wait_for_selector(".complaint:has-text('was restarted')")
    assert page.locator(".complaint").count() == 1
    page.wait_for_selector("#curve [data-state=drawn]")
