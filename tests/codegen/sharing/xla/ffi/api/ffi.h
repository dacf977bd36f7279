// Stands in for XLA's header where loops are shared out without XLA: its thread pool alone.

#ifndef XLA_FFI_API_FFI_H_
#define XLA_FFI_API_FFI_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace xla::ffi {

class ThreadPool {
  public:
    explicit ThreadPool(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Serve(); });
    }

    ~ThreadPool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        for (std::thread &thread : threads_) thread.join();
    }

    int64_t num_threads() const { return static_cast<int64_t>(threads_.size()); }

    void Schedule(std::function<void()> task) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        changed_.notify_one();
    }

  private:
    void Serve() {
        while (true) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
                if (tasks_.empty()) return;
                task = std::move(tasks_.front());
                tasks_.pop_front();
            }
            task();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> tasks_;
    bool closed_ = false;
    std::vector<std::thread> threads_;
};

} // namespace xla::ffi

#endif // XLA_FFI_API_FFI_H_
